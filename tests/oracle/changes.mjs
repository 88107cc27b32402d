// SPDX-License-Identifier: MIT
// What one command may do. Each change takes the oracle, who does it, and the set of paths to look at
// afterwards, to which it adds; it gives the shell words, or nothing when it does not apply.
import * as edits from './edits.mjs';

const NAMED = ['', 'lib/', 'lib/deep/er/', 'doc/'];
export const FILES_MAX = 40;
const FILES_MIN = 8;
const MODES = [0o644, 0o600, 0o755, 0o750];

const room = ({ model }, n = 1) => model.files.size + n <= FILES_MAX;

/** A directory ("dir/") that stands nowhere yet, perhaps inside of another one. */
function newDirectory({ model, random }, not) {
	const parents = ['', '', ...model.directories().filter((dir) => !not || !dir.startsWith(not))];
	return `${random.pick(parents)}d${model.nNames++}/`;
}

/** Adds the paths below a directory, and where they are in another one then. */
function addBelow({ model }, paths, dir, other) {
	for (const path of model.below(dir)) {
		paths.add(path);
		if (other) paths.add(other + path.slice(dir.length));
	}
}

export const changes = [
	function lines(oracle, author, paths) {
		const path = oracle.freePath(1);
		if (!path) return undefined;
		paths.add(path);
		return edits.editLines(oracle.model, author, path, oracle.random.between(1, 3));
	},
	function moreLines(oracle, author, paths) {
		const path = oracle.freePath(1);
		if (!path) return undefined;
		paths.add(path);
		return edits.editLines(oracle.model, author, path, oracle.random.between(2, 8));
	},
	function append(oracle, author, paths) {
		const path = oracle.freePath();
		if (!path) return undefined;
		paths.add(path);
		return edits.append(oracle.model, author, path);
	},
	function create(oracle, author, paths) {
		if (!room(oracle)) return undefined;
		const path = oracle.model.newName(NAMED);
		paths.add(path);
		return edits.create(oracle.model, author, path);
	},
	function overwrite(oracle, author, paths) {
		const path = oracle.freePath();
		if (!path) return undefined;
		paths.add(path);
		return edits.create(oracle.model, author, path);
	},
	function createAgain(oracle, author, paths) {
		const { model, random } = oracle;
		const path = random.pick([...model.gone.keys()].filter((gone) => !model.files.has(gone)).sort());
		if (!path || !room(oracle)) return undefined;
		paths.add(path);
		return random.chance(50) ? edits.restore(model, author, path) : edits.create(model, author, path);
	},
	function remove(oracle, author, paths) {
		const path = oracle.freePath();
		if (!path || oracle.model.files.size <= FILES_MIN) return undefined;
		paths.add(path);
		return edits.remove(oracle.model, path);
	},
	function rename(oracle, author, paths) {
		const from = oracle.freePath();
		const to = oracle.random.chance(20) ? oracle.freePath() : oracle.model.newName(NAMED);
		if (!from || !to || from === to) return undefined;
		paths.add(from).add(to);
		return edits.rename(oracle.model, from, to);
	},
	function renameAndEdit(oracle, author, paths) {
		const from = oracle.freePath(4);
		const to = oracle.model.newName(NAMED);
		if (!from) return undefined;
		paths.add(from).add(to);
		const words = edits.rename(oracle.model, from, to);
		return `${words} && ${edits.editLines(oracle.model, author, to, 2, ['replace', 'insert'])}`;
	},
	function copy(oracle, author, paths) {
		const from = oracle.freePath();
		const to = oracle.random.chance(20) ? oracle.freePath() : oracle.model.newName(NAMED);
		if (!from || !to || from === to || !room(oracle)) return undefined;
		paths.add(to);
		return edits.copy(oracle.model, author, from, to);
	},
	function setMode(oracle, author, paths) {
		const path = oracle.freePath();
		if (!path) return undefined;
		paths.add(path);
		return edits.setMode(oracle.model, path, oracle.random.pick(MODES));
	},
	function convert(oracle, author, paths) {
		const path = oracle.freePath();
		if (!path) return undefined;
		paths.add(path);
		return edits.convert(oracle.model, path);
	},
	function moveBlock(oracle, author, paths) {
		const from = oracle.freePath(2);
		const to = oracle.freePath();
		if (!from || !to) return undefined;
		paths.add(from).add(to);
		return edits.moveBlock(oracle.model, from, to);
	},
	function copyBlock(oracle, author, paths) {
		const from = oracle.freePath(2);
		const to = oracle.freePath();
		if (!from || !to) return undefined;
		paths.add(to);
		return edits.copyBlock(oracle.model, author, from, to);
	},
	function renameDirectory(oracle, author, paths) {
		const from = oracle.random.pick(oracle.freeDirectories());
		if (!from) return undefined;
		const to = newDirectory(oracle, from);
		addBelow(oracle, paths, from, to);
		return edits.renameDirectory(oracle.model, from, to);
	},
	function moveByCopy(oracle, author, paths) {
		const from = oracle.random.pick(oracle.freeDirectories());
		if (!from) return undefined;
		const to = newDirectory(oracle, from);
		addBelow(oracle, paths, from, to);
		return edits.moveByCopy(oracle.model, from, to);
	},
	function copyDirectory(oracle, author, paths) {
		const from = oracle.random.pick(oracle.freeDirectories());
		if (!from || !room(oracle, oracle.model.below(from).length)) return undefined;
		const to = newDirectory(oracle, from);
		addBelow(oracle, paths, from, to);
		return edits.copyDirectory(oracle.model, author, from, to);
	},
	function swapDirectories(oracle, author, paths) {
		const a = oracle.random.pick(oracle.freeDirectories());
		const b = oracle.random.pick(oracle.freeDirectories());
		if (!a || a.startsWith(b) || b.startsWith(a)) return undefined;
		addBelow(oracle, paths, a, b);
		addBelow(oracle, paths, b, a);
		return edits.swapDirectories(oracle.model, a, b);
	},
	function removeDirectory(oracle, author, paths) {
		const dir = oracle.random.pick(oracle.freeDirectories());
		if (!dir || oracle.model.files.size - oracle.model.below(dir).length < FILES_MIN) return undefined;
		addBelow(oracle, paths, dir);
		return edits.removeDirectory(oracle.model, dir);
	},
];
