// SPDX-License-Identifier: MIT
// Random changes as a person or a program makes them: each changes the model and gives the shell
// words that do the same to the files. Lines are found by their marks, never by their numbers, so
// that a change means the same wherever others have changed the file meanwhile.

const quote = (text) => `'${text}'`; // texts are of letters, digits and blanks only

/** The sed script that does what change() is about to do to a file's lines. */
const inside = {
	replace(model, author, lines) {
		const i = model.random.below(lines.length);
		const old = lines[i];
		lines[i] = model.line(author);
		return `s/^${old.mark}.*/${lines[i].text}/`;
	},
	insert(model, author, lines) {
		const i = model.random.below(lines.length);
		const line = model.line(author);
		const { mark } = lines[i];
		const after = model.random.chance(50);
		lines.splice(after ? i + 1 : i, 0, line);
		return `/^${mark}/${after ? 'a' : 'i'} ${line.text}`;
	},
	remove(model, author, lines) {
		const [{ mark }] = lines.splice(model.random.below(lines.length), 1);
		return `/^${mark}/d`;
	},
	/* white space at a line's end changes no owner */
	blank(model, author, lines) {
		const i = model.random.below(lines.length);
		lines[i] = { ...lines[i], text: `${lines[i].text} ` };
		return `s/^${lines[i].mark}.*/& /`;
	},
};

/** n changes inside a file; only what leaves the other lines alone. */
export function editLines(model, author, path, n, kinds = Object.keys(inside)) {
	const { lines } = model.files.get(path);
	const copy = [...lines];
	const words = [];
	for (let i = 0; i < n && copy.length; i++) {
		const script = inside[model.random.pick(kinds)](model, author, copy);
		words.push(`sed -i ${quote(script)} ${path}`);
	}
	model.set(path, copy);
	return words.join(' && ');
}

export function append(model, author, path) {
	const added = model.lines(author, model.random.between(1, 4));
	model.set(path, [...model.files.get(path).lines, ...added]);
	return `printf '%s\\n' ${added.map((line) => quote(line.text)).join(' ')} >>${path}`;
}

export function create(model, author, path) {
	const lines = model.lines(author, model.random.between(0, 12));
	model.set(path, lines);
	const parent = path.includes('/') ? `mkdir -p ${path.slice(0, path.lastIndexOf('/'))} && ` : '';
	const texts = lines.map((line) => quote(line.text)).join(' ');
	return `${parent}${lines.length ? `printf '%s\\n' ${texts}` : ':'} >${path}`;
}

export function remove(model, path) {
	model.files.delete(path);
	return `rm ${path}`;
}

export function rename(model, from, to) {
	const parent = to.includes('/') ? `mkdir -p ${to.slice(0, to.lastIndexOf('/'))} && ` : '';
	model.rename(from, to);
	return `${parent}mv ${from} ${to}`;
}

export function renameDirectory(model, from, to) {
	for (const path of model.below(from)) model.rename(path, to + path.slice(from.length));
	return `mv ${from.slice(0, -1)} ${to.slice(0, -1)}`;
}

/** Takes a block of lines out of one file and puts it at the end of another, or of the same. */
export function moveBlock(model, from, to) {
	const { random } = model;
	const lines = [...model.files.get(from).lines];
	const n = random.between(1, Math.min(5, lines.length));
	const block = lines.splice(random.below(lines.length - n + 1), n);
	const marks = `-e '^${block.map((line) => line.mark).join("' -e '^")}'`;
	const words = [`grep ${marks} ${from} >.block`];
	words.push(`{ grep -v ${marks} ${from} || true; } >.rest`, `cat .rest >${from}`, `cat .block >>${to}`, 'rm .block .rest');
	model.set(from, lines);
	model.set(to, [...model.files.get(to).lines, ...block]);
	return words.join(' && ');
}
