// SPDX-License-Identifier: MIT
// The oracle's own idea of a project: which lines each file has and who may have written each.
//
// Most lines begin with a mark that no other line was born with. Some are *common*: a brace, a blank
// line, "return 0;", which every author writes alike. And a copied line has its mark twice. The rule
// for who owns a line after a publication, where "before" and "after" are the contents of the paths
// that it changed:
//
//  1. A line with a mark that is there at most once before and at most once after belongs to who it
//     belonged to, wherever it went; to the publication, if it was not there before.
//  2. A file that was deleted and one that was added with the same text, which no other file had or
//     has, are one file under another name: each line belongs to who it belonged to.
//  3. So does any line between two lines of rule 1 that are neighbours as before, with the same lines
//     between them, in a file that kept its path and whose lines of rule 1 kept their order; the ends
//     of the file count as such lines.
//  4. Of any other line nobody can tell which one it is: it belongs to one of those to whom equal
//     lines belonged before, or to the publication.
//
// Lines are equal when they differ only in white space at their ends. What blame answered once is
// the line's one owner from then on.

/** Numbers that a seed repeats (a linear congruence over 2^32; its high bits are used). */
export class Random {
	constructor(seed) {
		this.state = seed >>> 0;
	}

	/** 0..n-1 */
	below(n) {
		this.state = (Math.imul(this.state, 1664525) + 1013904223) >>> 0;
		return Math.floor((this.state / 2 ** 32) * n);
	}

	between(low, high) {
		return low + this.below(high - low + 1);
	}

	chance(percent) {
		return this.below(100) < percent;
	}

	pick(list) {
		return list[this.below(list.length)];
	}

	/** n different ones of the list, in its order. */
	some(list, n) {
		const left = list.map((_, i) => i);
		while (left.length > n) left.splice(this.below(left.length), 1);
		return left.map((i) => list[i]);
	}
}

const WORDS = 'amber brook cedar delta ember fjord grove haven inlet jetty knoll larch'.split(' ');
export const COMMON = ['}', '', '{', '\treturn 0;', '\t}', 'end'];

export class Author {
	constructor(name) {
		this.name = name;
		this.owner = undefined; // what blame calls it, once that is known
	}
}

export const ORIGINAL = Object.assign(new Author('the base'), { owner: 'original' });

/** A line is never changed, only replaced. owners: who it may belong to. */
export class Line {
	constructor(text, owners) {
		this.text = text;
		this.owners = owners;
		this.key = text.replace(/[ \t\r]+$/, '');
		this.mark = /^mark[0-9]{6}/.exec(text)?.[0];
	}

	with(text) {
		return new Line(text, this.owners);
	}

	ownedBy(...owners) {
		return new Line(this.text, owners);
	}
}

function count(files) {
	const counts = new Map();
	for (const lines of files) for (const { key } of lines) counts.set(key, (counts.get(key) ?? 0) + 1);
	return counts;
}

const sameText = (a, b) => a.length === b.length && a.every((line, i) => line.text === b[i].text);

/** Lines before and after a publication, of the paths that it changed. */
class Change {
	constructor(authors, before, after, renamed) {
		this.authors = authors;
		this.renamed = renamed;
		this.before = before;
		this.after = after;
		this.nBefore = count(before.values());
		this.nAfter = count(after.values());
		this.places = new Map(); // key: where the line was, when there was one
		for (const [path, lines] of before)
			lines.forEach(({ key }, i) => this.nBefore.get(key) === 1 && this.places.set(key, { path, lines, i }));
	}

	/** Rule 1. */
	isSingle({ key, mark }) {
		return mark && (this.nBefore.get(key) ?? 0) <= 1 && this.nAfter.get(key) === 1;
	}

	/** Rule 2: the file as it was under its old name, or nothing. */
	wasNamed(path, lines) {
		if (this.before.has(path)) return undefined;
		const same = (files) => [...files].filter(([, other]) => sameText(lines, other));
		const [[old, oldLines] = [], ...more] = same(this.before);
		if (!old || more.length || this.after.has(old) || same(this.after).length > 1) return undefined;
		return oldLines;
	}

	/** Where a line of rule 1, or the end of a file, was in the file before. */
	indexBefore(path, lines, i) {
		if (i < 0) return -1;
		if (i === lines.length) return this.before.get(path).length;
		const place = this.places.get(lines[i].key);
		return place?.path === path ? place.i : undefined;
	}

	/** Rule 3: whether the lines that can be told from others are in the order that they had. */
	keptOrder(path, lines) {
		if (this.renamed.has(path) || !this.before.has(path)) return false;
		const indexes = lines
			.map((line, i) => (this.isSingle(line) ? this.indexBefore(path, lines, i) : undefined))
			.filter((i) => i !== undefined);
		return indexes.every((i, k) => k === 0 || i > indexes[k - 1]);
	}

	/** The lines from..to (exclusive both) as they were between the same two, or nothing. */
	between(path, lines, from, to) {
		const first = this.indexBefore(path, lines, from);
		const last = this.indexBefore(path, lines, to);
		if (first === undefined || last === undefined || last - first !== to - from) return undefined;
		const old = this.before.get(path).slice(first + 1, last);
		return old.every((line, k) => line.key === lines[from + 1 + k].key) ? old : undefined;
	}

	/** Rule 1: also of a line that was copied away before it was deleted. */
	placeOwners(line) {
		const place = this.places.get(line.key);
		return place ? place.lines[place.i].owners : line.owners;
	}

	/** Rule 4. */
	allowed(key) {
		const owners = new Set(this.authors);
		for (const lines of this.before.values())
			for (const line of lines) if (line.key === key) line.owners.forEach((owner) => owners.add(owner));
		return [...owners];
	}

	settle(path) {
		const lines = [...this.after.get(path)];
		const whole = this.wasNamed(path, lines);
		if (whole) return whole;
		const kept = this.keptOrder(path, lines);
		for (let from = -1; from < lines.length; ) {
			let to = from + 1;
			while (to < lines.length && !this.isSingle(lines[to])) to++;
			const old = kept && this.between(path, lines, from, to);
			if (to < lines.length) lines[to] = lines[to].ownedBy(...this.placeOwners(lines[to]));
			for (let i = from + 1; i < to; i++)
				lines[i] = lines[i].ownedBy(...(old ? old[i - from - 1].owners : this.allowed(lines[i].key)));
			from = to;
		}
		return lines;
	}
}

export class Model {
	constructor(random) {
		this.random = random;
		this.files = new Map(); // path: {lines, mode, touched}
		this.blobs = new Map(); // path: {id of the content, owners}, see blobs.mjs
		this.gone = new Map(); // path: lines, of files that were deleted
		this.nMarks = 0;
		this.nNames = 0;
	}

	line(author) {
		const mark = `mark${String(this.nMarks++).padStart(6, '0')}`;
		const words = Array.from({ length: this.random.between(1, 6) }, () => this.random.pick(WORDS));
		return new Line(`${mark} ${words.join(' ')}`, [author]);
	}

	common(author) {
		return new Line(this.random.pick(COMMON), [author]);
	}

	/** Never ends in a blank line, which a shell's $(...) would lose; begins as it likes. */
	lines(author, n) {
		return Array.from({ length: n }, (_, i) =>
			i < n - 1 && this.random.chance(30) ? this.common(author) : this.line(author));
	}

	newName(directories) {
		return `${this.random.pick(directories)}f${this.nNames++}`;
	}

	set(path, lines, mode = this.files.get(path)?.mode ?? 0o644) {
		this.files.set(path, { ...this.files.get(path), lines, mode });
	}

	delete(path) {
		this.gone.set(path, this.files.get(path).lines);
		this.files.delete(path);
	}

	rename(from, to) {
		this.files.set(to, { ...this.files.get(from), renamed: true });
		this.files.delete(from);
	}

	content(path) {
		return this.files
			.get(path)
			.lines.map((line) => `${line.text}\n`)
			.join('');
	}

	/** Paths below a directory ("dir/"). */
	below(dir) {
		return [...this.files.keys()].filter((path) => path.startsWith(dir));
	}

	/** All directories ("dir/") in which there is a file, parents before what is in them. */
	directories() {
		const all = new Set();
		for (const path of this.files.keys())
			for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) all.add(path.slice(0, at + 1));
		return [...all].sort();
	}

	/** What there is now, for publish() after it was changed. */
	snapshot() {
		return new Map(this.files);
	}

	/**
	 * What was done since the snapshot is published: says of each line who may own it. More than one
	 * author: they publish one after another, nobody knows in which order.
	 */
	publish(snapshot, ...authors) {
		const before = new Map();
		const after = new Map();
		const renamed = new Set([...this.files].filter(([, file]) => file.renamed).map(([path]) => path));
		for (const [path, { lines, touched }] of snapshot) {
			const now = this.files.get(path);
			if (now && !renamed.has(path) && sameText(lines, now.lines))
				this.files.set(path, { lines, mode: now.mode, touched }); // nothing was written
			else before.set(path, lines);
		}
		for (const [path, { lines }] of this.files)
			if (renamed.has(path) || before.has(path) || !snapshot.has(path)) after.set(path, lines);
		const change = new Change(authors, before, after, renamed);
		for (const path of after.keys())
			this.files.set(path, { lines: change.settle(path), mode: this.files.get(path).mode, touched: true });
	}
}
