// SPDX-License-Identifier: MIT
// Drives random changes through the real tools, by many authors, and compares contents and owners
// with the model after each step. The seed of a failure is in its message:
//
//	SBX_ORACLE_SEED=n SBX_ORACLE_SECONDS=600 node --test tests/oracle
//
// runs the same steps again. Without a seed each run takes another one.
import assert from 'node:assert/strict';
import test from 'node:test';
import { setting, World } from '../faults/world.mjs';
import * as edits from './edits.mjs';
import { Author, Model, ORIGINAL, Random } from './model.mjs';

const SECONDS = setting('SBX_ORACLE_SECONDS', 40);
const SEED = setting('SBX_ORACLE_SEED', Date.now() % 1_000_000_000);
const DIRECTORIES = ['', 'lib/', 'lib/deep/er/', 'doc/'];
const FILES_MAX = 40;
const FULL_CHECK_EVERY = 25;

class Oracle {
	constructor(world, model) {
		this.world = world;
		this.model = model;
		this.random = model.random;
		this.log = [];
		this.held = new Map(); // workspace session: {author, path} that only it touches
	}

	get heldPaths() {
		return new Set([...this.held.values()].map(({ path }) => path));
	}

	/** Paths that anybody may change now, with at least so many lines. */
	free(nLines = 0) {
		const held = this.heldPaths;
		return [...this.model.files]
			.filter(([path, { lines }]) => !held.has(path) && lines.length >= nLines)
			.map(([path]) => path)
			.sort();
	}

	freePath(nLines) {
		return this.random.pick(this.free(nLines));
	}

	// ---- steps; each gives the paths to look at afterwards, or nothing if it does not apply ----

	async command(author, words) {
		this.log.push(`  $ ${words}`);
		const result = await this.world.exec(words);
		assert.equal(result.status, 'ok', `${words}: ${JSON.stringify(result)}`);
		assert.ok(result.publish, `${words}: ${JSON.stringify(result)}`);
		author.owner = `workspace_session:${result.workspace_session_id}`;
	}

	async tool(name, args) {
		const result = await this.world.call(name, args);
		assert.ok(!result.error, `${name} ${JSON.stringify(args).slice(0, 300)}: ${JSON.stringify(result)}`);
	}

	/** One to three changes of one author in one command. */
	async shell() {
		const author = new Author('a command');
		const words = [];
		const paths = new Set();
		for (let i = this.random.between(1, 3); i > 0; i--) {
			const change = this.random.pick(this.changes);
			words.push(change.call(this, author, paths));
		}
		const script = words.filter(Boolean).join(' && ');
		if (!script) return undefined;
		await this.command(author, script);
		return [...paths];
	}

	changes = [
		function lines(author, paths) {
			const path = this.freePath(1);
			if (!path) return undefined;
			paths.add(path);
			return edits.editLines(this.model, author, path, this.random.between(1, 3));
		},
		function append(author, paths) {
			const path = this.freePath();
			if (!path) return undefined;
			paths.add(path);
			return edits.append(this.model, author, path);
		},
		function create(author, paths) {
			if (this.model.files.size >= FILES_MAX) return undefined;
			const path = this.model.newName(DIRECTORIES);
			paths.add(path);
			return edits.create(this.model, author, path);
		},
		function remove(author, paths) {
			const path = this.freePath();
			if (!path || this.model.files.size <= 8) return undefined;
			paths.add(path);
			return edits.remove(this.model, path);
		},
		function rename(author, paths) {
			const from = this.freePath();
			const to = this.random.chance(20) ? this.freePath() : this.model.newName(DIRECTORIES);
			if (!from || !to || from === to) return undefined;
			paths.add(from).add(to);
			return edits.rename(this.model, from, to);
		},
		function renameDirectory(author, paths) {
			const from = this.random.pick(DIRECTORIES.filter(Boolean));
			const to = `moved${this.model.nNames++}/`;
			const below = this.model.below(from);
			if (!below.length || below.some((path) => this.heldPaths.has(path))) return undefined;
			const words = edits.renameDirectory(this.model, from, to);
			for (const path of below) paths.add(path).add(to + path.slice(from.length));
			return words;
		},
		function moveBlock(author, paths) {
			const from = this.freePath(2);
			const to = this.freePath();
			if (!from || !to) return undefined;
			paths.add(from).add(to);
			return edits.moveBlock(this.model, from, to);
		},
	];

	async write() {
		const author = new Author('file_write');
		const fresh = this.model.files.size < FILES_MAX && this.random.chance(30);
		const path = fresh ? this.model.newName(DIRECTORIES) : this.freePath();
		if (!path) return undefined;
		if (fresh) edits.create(this.model, author, path);
		else if (this.random.chance(30)) edits.append(this.model, author, path);
		else edits.editLines(this.model, author, path, this.random.between(1, 6));
		await this.tool('file_write', { path, content: this.model.content(path) });
		return [path];
	}

	async edit() {
		const author = new Author('file_edit');
		const path = this.freePath(2);
		if (!path) return undefined;
		const lines = [...this.model.files.get(path).lines];
		const which = this.random.some(lines.map((_, i) => i), this.random.between(1, 2));
		const list = which.map((i) => {
			const { text } = lines[i];
			lines[i] = this.model.line(author);
			return { old_string: text, new_string: lines[i].text };
		});
		await this.tool('file_edit', { path, edits: list });
		this.model.set(path, lines);
		return [path];
	}

	/** Several commands at once, each on a file of its own or on its own lines of one file. */
	async parallel() {
		const n = this.random.between(2, 6);
		const one = this.random.chance(50) && this.freePath(2 * n);
		const paths = one ? [one] : this.random.some(this.free(1), n);
		const work = [];
		if (one) {
			const lines = [...this.model.files.get(one).lines];
			const which = this.random.some(lines.map((_, i) => i).filter((i) => i % 2 === 0), n);
			for (const i of which) {
				const author = new Author('a parallel command');
				const { mark } = lines[i];
				lines[i] = this.model.line(author);
				work.push([author, `sed -i 's/^${mark}.*/${lines[i].text}/' ${one}`]);
			}
			this.model.set(one, lines);
		} else {
			for (const path of paths) {
				const author = new Author('a parallel command');
				work.push([author, edits.editLines(this.model, author, path, 2)]);
			}
		}
		await Promise.all(work.map(([author, words]) => this.command(author, words)));
		return paths;
	}

	/** A session that keeps a file to itself for some steps. */
	async begin() {
		const path = this.held.size < 3 && this.freePath(2);
		if (!path) return undefined;
		const { workspace_session_id } = await this.world.adminJson('session create');
		const author = new Author('a workspace session');
		author.owner = `workspace_session:${workspace_session_id}`;
		this.held.set(workspace_session_id, { author, path, lines: [...this.model.files.get(path).lines] });
		return [];
	}

	async work() {
		const workspace_session_id = this.random.pick([...this.held.keys()]);
		if (!workspace_session_id) return undefined;
		const { author, path } = this.held.get(workspace_session_id);
		const published = this.model.files.get(path);
		const held = this.held.get(workspace_session_id);
		this.model.files.set(path, { ...published, lines: held.lines });
		const words = edits.editLines(this.model, author, path, 2) || ':';
		held.lines = this.model.files.get(path).lines;
		held.changed = true;
		this.model.files.set(path, published);
		const result = await this.world.exec(words, { workspace_session_id });
		assert.equal(result.status, 'ok', JSON.stringify(result));
		return [];
	}

	async publish() {
		const workspace_session_id = this.random.pick([...this.held.keys()]);
		if (!workspace_session_id) return undefined;
		const { path, lines, changed } = this.held.get(workspace_session_id);
		this.held.delete(workspace_session_id);
		if (changed) this.model.set(path, lines);
		await this.world.adminJson('session publish', workspace_session_id);
		return [path];
	}

	async squash() {
		await this.world.admin('squash', this.world.id);
		return this.random.some(this.free(), 3);
	}

	async collect() {
		await this.world.settled();
		await this.world.admin('gc', this.world.id);
		return this.random.some(this.free(), 3);
	}

	async restart() {
		await this.world.crash();
		return this.random.some(this.free(), 3);
	}

	// ---- what has to hold --------------------------------------------------------------------

	async check(path) {
		const file = this.model.files.get(path);
		const text = await this.world.text(path);
		if (!file) {
			assert.equal(text, null, `${path} should be gone`);
			return;
		}
		assert.equal(text, this.model.content(path), `content of ${path}`);
		const blame = await this.world.call('file_blame', { path });
		if (!file.touched) {
			assert.equal(blame.error?.kind, 'not_found', `nobody has touched ${path}`);
			return;
		}
		assert.ok(blame.ranges, `${path}: ${JSON.stringify(blame)}`);
		this.compareOwners(path, file.lines, blame.ranges);
	}

	compareOwners(path, lines, ranges) {
		const owners = ranges.flatMap(({ line_count, owner }) => Array(line_count).fill(owner));
		assert.equal(owners.length, lines.length, `${path}: lines with an owner`);
		for (const [i, { author, text }] of lines.entries()) {
			/* a file tool does not say which operation it was: blame says it first, then always */
			if (!author.owner && owners[i].startsWith('operation:')) author.owner = owners[i];
			assert.equal(owners[i], author.owner, `${path}:${i + 1} '${text}', by ${author.name}`);
		}
	}

	async checkAll() {
		for (const path of [...this.model.files.keys()].sort()) await this.check(path);
		assert.equal(await this.world.damage(), '', 'verify');
	}

	/** name: how often, of 100 */
	weights = { shell: 36, write: 14, edit: 12, parallel: 12, begin: 6, work: 8, publish: 5, squash: 3, collect: 2, restart: 2 };

	step() {
		let at = this.random.below(100);
		for (const [name, weight] of Object.entries(this.weights)) {
			if (at < weight) return name;
			at -= weight;
		}
		return 'shell';
	}
}

test('contents and owners are those that the oracle knows', async (t) => {
	const model = new Model(new Random(SEED));
	const base = {};
	for (let i = 0; i < 12; i++) {
		const path = model.newName(DIRECTORIES);
		model.files.set(path, { lines: model.lines(ORIGINAL, model.random.between(3, 25)), touched: false });
		base[path] = model.content(path);
	}
	const world = await World.make(t, { files: base });
	const oracle = new Oracle(world, model);
	const end = Date.now() + SECONDS * 1000;
	let n = 0;
	try {
		for (; Date.now() < end; n++) {
			const name = oracle.step();
			const paths = await oracle[name]();
			oracle.log.push(`${n} ${name} ${paths ?? '(nothing to do)'}`);
			for (const path of new Set(paths ?? [])) await oracle.check(path);
			if (n % FULL_CHECK_EVERY === 0) await oracle.checkAll();
		}
		await oracle.checkAll();
	} catch (error) {
		error.message = `SBX_ORACLE_SEED=${SEED}, step ${n}: ${error.message}\nlast steps:\n${oracle.log.slice(-12).join('\n')}`;
		throw error;
	}
	assert.ok(n > 5, `only ${n} steps in ${SECONDS} s`);
	t.diagnostic(`seed ${SEED}: ${n} steps`);
});
