// SPDX-License-Identifier: MIT
// Random changes as a person or a program makes them: each changes the model and gives the shell
// words that do the same to the files. The changes of editLines() find lines by their marks, never
// by their numbers, so that they mean the same wherever others have changed the file meanwhile.
import { Line } from './model.mjs';

const quote = (text) => `'${text}'`; // texts have no quotes, backslashes or slashes
const join = (...words) => words.filter(Boolean).join(' && ');

function makeParent(path) {
	const slash = path.lastIndexOf('/');
	return slash > 0 ? `mkdir -p ${path.slice(0, slash)}` : '';
}

/** Lines that sed can find: their mark is theirs alone in the file. */
export function marked(lines) {
	const n = new Map();
	for (const { mark } of lines) n.set(mark, (n.get(mark) ?? 0) + 1);
	return lines.map((_, i) => i).filter((i) => lines[i].mark && n.get(lines[i].mark) === 1);
}

/** Each takes the index of a marked line and gives a sed script, or nothing if it does not apply. */
const inside = {
	replace(model, author, lines, i) {
		const { mark } = lines[i];
		lines[i] = model.line(author);
		return `s/^${mark}.*/${lines[i].text}/`;
	},
	insert(model, author, lines, i) {
		const line = model.line(author);
		const { mark } = lines[i];
		const after = model.random.chance(50);
		lines.splice(after ? i + 1 : i, 0, line);
		return `/^${mark}/${after ? 'a' : 'i'} ${line.text}`;
	},
	remove(model, author, lines, i) {
		const [{ mark }] = lines.splice(i, 1);
		return `/^${mark}/d`;
	},
	/* white space at a line's end changes no owner */
	blank(model, author, lines, i) {
		lines[i] = lines[i].with(`${lines[i].text} `);
		return `s/^${lines[i].mark}.*/& /`;
	},
	insertCommon(model, author, lines, i) {
		const line = model.common(author);
		lines.splice(i + 1, 0, line);
		return line.text ? `/^${lines[i].mark}/a\\${line.text}` : `/^${lines[i].mark}/G`;
	},
	removeNext(model, author, lines, i) {
		if (!lines[i + 1] || lines[i + 1].mark) return undefined;
		lines.splice(i + 1, 1);
		return `/^${lines[i].mark}/{n;d}`;
	},
};

/** Up to n changes inside a file; only what leaves the other lines alone. */
export function editLines(model, author, path, n, kinds = Object.keys(inside)) {
	const lines = [...model.files.get(path).lines];
	const words = [];
	for (let k = 0; k < n; k++) {
		const which = marked(lines);
		if (!which.length) break;
		const script = inside[model.random.pick(kinds)](model, author, lines, model.random.pick(which));
		if (script) words.push(`sed -i ${quote(script)} ${path}`);
	}
	model.set(path, lines);
	return join(...words);
}

export function append(model, author, path) {
	const added = model.lines(author, model.random.between(1, 4));
	model.set(path, [...model.files.get(path).lines, ...added]);
	return `printf '%s\\n' ${added.map((line) => quote(line.text)).join(' ')} >>${path}`;
}

/** Also over a file that is there: all lines are another text then. */
export function create(model, author, path, lines = model.lines(author, model.random.between(0, 12))) {
	model.set(path, lines);
	const texts = lines.map((line) => quote(line.text)).join(' ');
	return join(makeParent(path), `${lines.length ? `printf '%s\\n' ${texts}` : ':'} >${path}`);
}

/** A deleted file written again with the lines that it had: a new file nevertheless. */
export function restore(model, author, path) {
	const lines = model.gone.get(path).map((line) => line.ownedBy(author));
	return create(model, author, path, lines);
}

export function remove(model, path) {
	model.delete(path);
	return `rm ${path}`;
}

export function rename(model, from, to) {
	const { mode } = model.files.get(from);
	model.rename(from, to);
	model.files.get(to).mode = mode;
	return join(makeParent(to), `mv ${from} ${to}`);
}

/** The copy's lines are the copier's. */
export function copy(model, author, from, to) {
	const { lines, mode } = model.files.get(from);
	const into = model.files.get(to)?.mode ?? mode; // cp keeps the mode of what it writes into
	model.set(to, lines.map((line) => line.ownedBy(author)), into);
	return join(makeParent(to), `cp ${from} ${to}`);
}

export function setMode(model, path, mode) {
	model.files.set(path, { ...model.files.get(path), mode });
	return `chmod ${mode.toString(8)} ${path}`;
}

/** CRLF, or LF again: nobody's work. */
export function convert(model, path) {
	const { lines } = model.files.get(path);
	const back = lines.some(({ text }) => text.endsWith('\r'));
	const change = back ? (text) => text.replace(/\r$/, '') : (text) => `${text}\r`;
	model.set(path, lines.map((line) => line.with(change(line.text))));
	return `sed -i ${quote(back ? 's/\\r$//' : 's/$/\\r/')} ${path}`;
}

// ---- directories ("dir/") --------------------------------------------------------------------

export function renameDirectory(model, from, to) {
	for (const path of model.below(from)) model.rename(path, to + path.slice(from.length));
	return join(makeParent(to.slice(0, -1)), `mv ${from.slice(0, -1)} ${to.slice(0, -1)}`);
}

export function copyDirectory(model, author, from, to) {
	for (const path of model.below(from)) copy(model, author, path, to + path.slice(from.length));
	return join(makeParent(to.slice(0, -1)), `cp -r ${from.slice(0, -1)} ${to.slice(0, -1)}`);
}

/** A rename that no system call tells of. */
export function moveByCopy(model, from, to) {
	for (const path of model.below(from)) model.rename(path, to + path.slice(from.length));
	return join(
		makeParent(to.slice(0, -1)),
		`cp -r ${from.slice(0, -1)} ${to.slice(0, -1)}`,
		`rm -r ${from.slice(0, -1)}`,
	);
}

export function swapDirectories(model, a, b) {
	const inA = model.below(a).map((path) => [b + path.slice(a.length), model.files.get(path), path]);
	const inB = model.below(b).map((path) => [a + path.slice(b.length), model.files.get(path), path]);
	for (const [, , path] of [...inA, ...inB]) model.files.delete(path);
	for (const [path, file] of [...inA, ...inB]) model.files.set(path, { ...file, renamed: true });
	const [x, y] = [a.slice(0, -1), b.slice(0, -1)];
	return join(`mv ${x} .swap`, `mv ${y} ${x}`, `mv .swap ${y}`);
}

export function removeDirectory(model, dir) {
	for (const path of model.below(dir)) model.delete(path);
	return `rm -r ${dir.slice(0, -1)}`;
}

// ---- blocks of lines -------------------------------------------------------------------------

function block(model, lines) {
	const n = model.random.between(1, Math.min(6, lines.length));
	const at = model.random.below(lines.length - n + 1);
	return { at, n, range: `${at + 1},${at + n}` };
}

/** Takes a block of lines out of one file and puts it at the end of another, or of the same. */
export function moveBlock(model, from, to) {
	const lines = [...model.files.get(from).lines];
	const { at, n, range } = block(model, lines);
	const taken = lines.splice(at, n);
	model.set(from, lines);
	model.set(to, [...model.files.get(to).lines, ...taken]);
	return join(`sed -n ${range}p ${from} >.block`, `sed -i ${range}d ${from}`, `cat .block >>${to}`, 'rm .block');
}

export function copyBlock(model, author, from, to) {
	const { lines } = model.files.get(from);
	const { at, n, range } = block(model, lines);
	const copies = lines.slice(at, at + n).map((line) => new Line(line.text, [author]));
	model.set(to, [...model.files.get(to).lines, ...copies]);
	return join(`sed -n ${range}p ${from} >.block`, `cat .block >>${to}`, 'rm .block');
}
