// SPDX-License-Identifier: MIT
// The oracle's own idea of a project: which lines each file has and who wrote each of them. Every
// line begins with a mark that no other line has, so there is never a doubt which line is which.

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

export class Author {
	constructor(name) {
		this.name = name;
		this.owner = undefined; // what blame calls it, once that is known
	}
}

export const ORIGINAL = Object.assign(new Author('the base'), { owner: 'original' });

export class Model {
	constructor(random) {
		this.random = random;
		this.files = new Map(); // path: {lines: [{mark, text, author}], touched}
		this.nMarks = 0;
		this.nNames = 0;
	}

	line(author) {
		const mark = `mark${String(this.nMarks++).padStart(6, '0')}`;
		const words = Array.from({ length: this.random.between(1, 6) }, () => this.random.pick(WORDS));
		return { mark, text: `${mark} ${words.join(' ')}`, author };
	}

	lines(author, n) {
		return Array.from({ length: n }, () => this.line(author));
	}

	newName(directories) {
		return `${this.random.pick(directories)}f${this.nNames++}`;
	}

	set(path, lines) {
		this.files.set(path, { lines, touched: true });
	}

	rename(from, to) {
		this.files.set(to, { lines: this.files.get(from).lines, touched: true });
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
}
