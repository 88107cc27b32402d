// SPDX-License-Identifier: MIT
// Binary files, which have one owner each. A content keeps its owner under another name when it was
// deleted once and is there once in the same publication; else it may be that or the publication's.
import { FILES_MAX } from './changes.mjs';

const BLOBS_MAX = 8;

const text = (id) => `blob ${String(id).padStart(6, '0')} with words enough to be told from others`;
export const contentOf = ({ id }) => `${text(id)}\0`;
const write = (id, path) => `printf '${text(id)}\\0' >${path}`;

/** Like Model.publish(), for model.blobs. */
export function publishBlobs(model, before, author) {
	for (const [path, old] of before)
		if (model.blobs.get(path)?.id === old.id) model.blobs.set(path, old); // nothing was written
	const gone = [...before].filter(([path]) => !model.blobs.has(path)).map(([, blob]) => blob);
	const added = [...model.blobs].filter(([path, { id }]) => before.get(path)?.id !== id);
	for (const [path, blob] of added) {
		const same = gone.filter(({ id }) => id === blob.id);
		const alike = added.filter(([, { id }]) => id === blob.id);
		const owners = new Set(same.flatMap((one) => one.owners));
		if (!same.length || same.length > 1 || alike.length > 1) owners.add(author);
		model.blobs.set(path, { ...blob, owners: [...owners] });
	}
}

/** As those of changes.mjs. */
export const blobChanges = [
	function create({ model }, author, paths) {
		if (model.blobs.size >= BLOBS_MAX || model.files.size >= FILES_MAX) return undefined;
		const path = `b${model.nNames++}.bin`;
		const id = model.nMarks++;
		model.blobs.set(path, { id, owners: [author] });
		paths.add(path);
		return write(id, path);
	},
	function rewrite({ model, random }, author, paths) {
		const path = random.pick([...model.blobs.keys()]);
		if (!path) return undefined;
		const id = model.nMarks++;
		model.blobs.set(path, { id, owners: [author] });
		paths.add(path);
		return write(id, path);
	},
	function rename({ model, random }, author, paths) {
		const from = random.pick([...model.blobs.keys()]);
		const to = random.chance(30) ? random.pick([...model.blobs.keys()]) : `b${model.nNames++}.bin`;
		if (!from || from === to) return undefined;
		model.blobs.set(to, model.blobs.get(from));
		model.blobs.delete(from);
		paths.add(from).add(to);
		return `mv ${from} ${to}`;
	},
	function copy({ model, random }, author, paths) {
		const from = random.pick([...model.blobs.keys()]);
		if (!from || model.blobs.size >= BLOBS_MAX) return undefined;
		const to = `b${model.nNames++}.bin`;
		model.blobs.set(to, { ...model.blobs.get(from), owners: [author] });
		paths.add(to);
		return `cp ${from} ${to}`;
	},
	function remove({ model, random }, author, paths) {
		const path = random.pick([...model.blobs.keys()]);
		if (!path) return undefined;
		model.blobs.delete(path);
		paths.add(path);
		return `rm ${path}`;
	},
];
