// SPDX-License-Identifier: MIT
// Drives random changes through the real tools, by many authors, and compares contents, modes and
// owners with the model after each step. The seed of a failure is in its message:
//
//	SBX_ORACLE_SEED=n SBX_ORACLE_SECONDS=600 node --test tests/oracle
//
// runs the same steps again (but for what depends on when a process was killed). Without a seed each
// run takes another one.
import assert from 'node:assert/strict';
import test from 'node:test';
import { setting, until, World } from '../faults/world.mjs';
import { blobChanges, contentOf, publishBlobs } from './blobs.mjs';
import { changes } from './changes.mjs';
import * as edits from './edits.mjs';
import { Author, Line, Model, ORIGINAL, Random } from './model.mjs';

const SECONDS = setting('SBX_ORACLE_SECONDS', 50);
const SEED = setting('SBX_ORACLE_SEED', Date.now() % 1_000_000_000);
const DIRECTORIES = ['', 'lib/', 'lib/deep/er/', 'doc/'];
const FULL_CHECK_EVERY = 25;
const HELD_MAX = 3;
const CRASH_DELAYS_MS = 40;

class Oracle {
	constructor(world, model) {
		this.world = world;
		this.model = model;
		this.random = model.random;
		this.log = [];
		this.held = new Map(); // workspace session: {author, path, ...} of a file that only it touches
		this.nJudged = 0; // lines that blame was asked for,
		this.nUnclear = 0; // and those of which the model allowed several owners
	}

	get heldPaths() {
		return new Set([...this.held.values()].map(({ path }) => path));
	}

	/** Paths that anybody may change now, with at least so many lines that sed can find. */
	free(nMarked = 0) {
		const held = this.heldPaths;
		return [...this.model.files]
			.filter(([path, { lines }]) => !held.has(path) && (!nMarked || edits.marked(lines).length >= nMarked))
			.map(([path]) => path)
			.sort();
	}

	freePath(nMarked) {
		return this.random.pick(this.free(nMarked));
	}

	/** Directories in which no session holds a file. */
	freeDirectories() {
		const held = [...this.heldPaths];
		return this.model.directories().filter((dir) => !held.some((path) => path.startsWith(dir)));
	}

	author(name) {
		return new Author(`${name} of step ${this.nSteps}`);
	}

	// ---- what the steps are made of --------------------------------------------------------

	nowOwnedBy(author, { workspace_session_id }) {
		author.owner = `workspace_session:${workspace_session_id}`;
	}

	async command(author, words, more) {
		this.log.push(`  $ ${words}`);
		const result = await this.world.exec(words, more);
		assert.equal(result.status, 'ok', `${words}: ${JSON.stringify(result)}`);
		this.nowOwnedBy(author, result);
		return result;
	}

	async published(author, words) {
		const result = await this.command(author, words);
		assert.ok(result.publish, `${words}: ${JSON.stringify(result)}`);
	}

	/** A command that has made its changes and waits for a line of input. */
	async waiting(author, words) {
		this.log.push(`  $ ${words} (and waits)`);
		const cmd = `${words} && echo changed && read -r go`;
		const { command_session_id, ...state } = await this.world.call('exec_command', { cmd, yield_time_ms: 0 });
		this.nowOwnedBy(author, state);
		const args = { command_session_id, stdin: '', yield_time_ms: 100 };
		let output = state.output ?? '';
		await until(async () => {
			if (output.includes('changed')) return true;
			const more = await this.world.call('write_command_stdin', args);
			assert.equal(more.status, 'running', JSON.stringify(more));
			output += more.output;
			return false;
		}, `${words} has run`);
		return command_session_id;
	}

	async finished(command_session_id) {
		const args = { command_session_id, stdin: 'go\n', yield_time_ms: 50_000 };
		return this.world.call('write_command_stdin', args);
	}

	async tool(name, args) {
		const result = await this.world.call(name, args);
		assert.ok(!result.error, `${name} ${JSON.stringify(args).slice(0, 300)}: ${JSON.stringify(result)}`);
	}

	async replaceText(author, path, from, to) {
		const before = this.model.snapshot();
		const { lines } = this.model.files.get(path);
		this.model.set(path, lines.map((line) => (line === from ? to : line)));
		this.model.publish(before, author);
		await this.tool('file_edit', { path, edits: [{ old_string: from.text, new_string: to.text }] });
	}

	// ---- steps; each gives the paths to look at afterwards, or nothing if it does not apply ----

	/** One to three changes of one author in one command. */
	async shell() {
		const author = this.author('a command');
		const before = this.model.snapshot();
		const blobs = new Map(this.model.blobs);
		const words = [];
		const paths = new Set();
		for (let i = this.random.between(1, 3); i > 0; i--) {
			const list = this.random.chance(15) ? blobChanges : changes;
			words.push(this.random.pick(list)(this, author, paths));
		}
		const script = words.filter(Boolean).join(' && ');
		this.model.publish(before, author);
		publishBlobs(this.model, blobs, author);
		if (!script) return undefined;
		await this.published(author, script);
		return [...paths];
	}

	async write() {
		const author = this.author('file_write');
		const before = this.model.snapshot();
		const fresh = this.random.chance(30);
		const path = fresh ? this.model.newName(DIRECTORIES) : this.freePath();
		if (!path) return undefined;
		if (fresh) edits.create(this.model, author, path);
		else if (this.random.chance(30)) edits.append(this.model, author, path);
		else edits.editLines(this.model, author, path, this.random.between(1, 6));
		const content = this.model.content(path);
		this.model.publish(before, author);
		await this.tool('file_write', { path, content });
		return [path];
	}

	async edit() {
		const author = this.author('file_edit');
		const path = this.freePath(2);
		if (!path) return undefined;
		const before = this.model.snapshot();
		const lines = [...this.model.files.get(path).lines];
		const which = this.random.some(edits.marked(lines), this.random.between(1, 2));
		const list = which.map((i) => {
			const { text } = lines[i];
			lines[i] = this.model.line(author);
			return { old_string: text, new_string: lines[i].text };
		});
		this.model.set(path, lines);
		this.model.publish(before, author);
		await this.tool('file_edit', { path, edits: list });
		return [path];
	}

	/** Several commands at once, each on a file of its own. */
	async parallel() {
		const n = this.random.between(2, 6);
		const paths = this.random.some(this.free(1), n);
		const work = paths.map((path) => {
			const author = this.author(`a parallel command on ${path}`);
			const before = this.model.snapshot();
			const words = edits.editLines(this.model, author, path, 2) || ':';
			this.model.publish(before, author);
			return [author, words];
		});
		await Promise.all(work.map(([author, words]) => this.published(author, words)));
		return paths;
	}

	/** Several commands at once, each on its own lines of one file: all but the first merge. */
	async merge() {
		const n = this.random.between(2, 6);
		const path = this.freePath(2 * n);
		if (!path) return undefined;
		const before = this.model.snapshot();
		const lines = [...this.model.files.get(path).lines];
		const which = this.random.some(edits.marked(lines).filter((_, k) => k % 2 === 0), n);
		const work = which.map((i, k) => {
			const author = this.author(`parallel command ${k} on ${path}`);
			const { mark } = lines[i];
			lines[i] = this.model.line(author);
			return [author, `sed -i 's/^${mark}.*/${lines[i].text}/' ${path}`];
		});
		this.model.set(path, lines);
		this.model.publish(before, ...work.map(([author]) => author));
		await Promise.all(work.map(([author, words]) => this.published(author, words)));
		return [path];
	}

	/**
	 * A command and a tool change one line: the command is refused and kept. Its reject survives a
	 * crash, is refused again as long as the line is another, and lands when it is as it was.
	 */
	async refuse() {
		const path = this.freePath(1);
		if (!path) return undefined;
		const line = this.lineOf(path);
		const [author, other, third] = ['a refused command', 'who came first', 'who made way'].map((name) => this.author(name));
		const mine = this.model.line(author);
		const side = this.model.newName(DIRECTORIES);
		const scratch = new Model(this.random);
		Object.assign(scratch, { nMarks: this.model.nMarks + 1 });
		const words = edits.create(scratch, author, side);
		this.model.nMarks = scratch.nMarks;

		const command = await this.waiting(author, `sed -i 's/^${line.mark}.*/${mine.text}/' ${path} && ${words}`);
		const theirs = this.model.line(other);
		await this.replaceText(other, path, line, theirs);
		const result = await this.finished(command);
		this.assertRefused(result, path, author);
		if (this.random.chance(30)) await this.world.crash();
		await this.check(path);
		await this.check(side);
		const retried = await this.world.tryAdmin('reject', 'retry', this.world.id, result.reject_id, '--json');
		assert.notEqual(retried.code, 0, `retry against another line: ${retried.stdout}`);
		if (this.random.chance(25)) {
			await this.world.admin('reject', 'drop', this.world.id, result.reject_id);
			return [path, side];
		}
		await this.replaceText(third, path, this.model.files.get(path).lines.find(({ key }) => key === theirs.key), line.ownedBy(third));
		await this.check(path);
		await this.world.adminJson('reject retry', result.reject_id);
		const before = this.model.snapshot();
		const now = this.model.files.get(path).lines.map((l) => (l.key === line.key ? mine : l));
		this.model.set(path, now);
		this.model.set(side, scratch.files.get(side).lines);
		this.model.publish(before, author);
		assert.deepEqual((await this.world.adminJson('reject list')).rejects, []);
		return [path, side];
	}

	/** The same with a managed session: it lives on, and can be published when the line is as it was. */
	async refuseSession() {
		const path = this.freePath(1);
		if (!path) return undefined;
		const line = this.lineOf(path);
		const [author, other, third] = ['a refused session', 'who came first', 'who made way'].map((name) => this.author(name));
		const mine = this.model.line(author);
		const { workspace_session_id } = await this.world.adminJson('session create');
		await this.command(author, `sed -i 's/^${line.mark}.*/${mine.text}/' ${path}`, { workspace_session_id });
		const theirs = this.model.line(other);
		await this.replaceText(other, path, line, theirs);
		const again = () => this.world.tryAdmin('session', 'publish', this.world.id, workspace_session_id, '--json');
		assert.equal((await again()).code, 1, 'another line is there');
		if (this.random.chance(30)) await this.world.crash();
		await this.check(path);
		const present = this.model.files.get(path).lines.find(({ key }) => key === theirs.key);
		await this.replaceText(third, path, present, line.ownedBy(third));
		await this.check(path);
		const before = this.model.snapshot();
		this.model.set(path, this.model.files.get(path).lines.map((l) => (l.key === line.key ? mine : l)));
		this.model.publish(before, author);
		const { code, stdout, stderr } = await again();
		assert.equal(code, 0, stdout + stderr);
		return [path];
	}

	lineOf(path) {
		const { lines } = this.model.files.get(path);
		return lines[this.random.pick(edits.marked(lines))];
	}

	assertRefused(result, path, author) {
		assert.equal(result.publish_rejected, true, JSON.stringify(result));
		assert.equal(result.publish_reject_class, 'source_conflict');
		assert.deepEqual(result.conflicts.map((c) => [c.path, c.kind, c.ours_owner]), [[path, 'content', author.owner]]);
		assert.equal(result.conflicts[0].ours_ranges.length, 1);
	}

	/** A session that keeps a file to itself for some steps. */
	async begin() {
		const path = this.held.size < HELD_MAX && this.freePath(2);
		if (!path) return undefined;
		const { workspace_session_id } = await this.world.adminJson('session create');
		const author = this.author('a workspace session');
		this.nowOwnedBy(author, { workspace_session_id });
		this.held.set(workspace_session_id, { author, path, lines: [...this.model.files.get(path).lines] });
		return [];
	}

	async work() {
		const workspace_session_id = this.random.pick([...this.held.keys()]);
		if (!workspace_session_id) return undefined;
		const held = this.held.get(workspace_session_id);
		const { author, path } = held;
		const published = this.model.files.get(path);
		this.model.set(path, held.lines);
		const words = edits.editLines(this.model, author, path, 2) || ':';
		held.lines = this.model.files.get(path).lines;
		this.model.files.set(path, published);
		await this.command(author, words, { workspace_session_id });
		return [];
	}

	async publish() {
		const workspace_session_id = this.random.pick([...this.held.keys()]);
		if (!workspace_session_id) return undefined;
		const { author, path, lines } = this.held.get(workspace_session_id);
		this.held.delete(workspace_session_id);
		if (this.random.chance(20)) {
			await this.world.admin('session', 'discard', this.world.id, workspace_session_id);
			return [path];
		}
		const before = this.model.snapshot();
		this.model.set(path, lines);
		this.model.publish(before, author);
		await this.world.adminJson('session publish', workspace_session_id);
		return [path];
	}

	async squash() {
		const { code, stderr } = await this.world.tryAdmin('squash', this.world.id);
		if (code !== 0) assert.match(stderr, /being squashed already/); // by sandboxd itself
		return this.random.some(this.free(), 6);
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

	/** What a command has written is published although sandboxd was killed under it. */
	async crashUnder() {
		const author = this.author('a command under which sandboxd was killed');
		const path = this.freePath(1);
		if (!path) return undefined;
		const before = this.model.snapshot();
		const words = edits.editLines(this.model, author, path, 2);
		this.model.publish(before, author);
		if (!words) return undefined;
		await this.waiting(author, words);
		await this.world.crash();
		await this.world.settled();
		return [path];
	}

	/** Somewhere on the way of a command that changes one file at once: all of it, or nothing. */
	async crashAnywhere() {
		const author = this.author('a command during which sandboxd was killed');
		const path = this.freePath(1);
		if (!path) return undefined;
		const files = this.model.snapshot();
		const words = edits.editLines(this.model, author, path, 1, ['replace', 'insert']);
		const changed = this.model.content(path);
		const args = { cmd: words, yield_time_ms: 0 };
		const answer = (await this.world.client()).call('exec_command', args).catch(() => undefined);
		this.log.push(`  $ ${words} (killed)`);
		await new Promise((next) => setTimeout(next, this.random.below(CRASH_DELAYS_MS))); // the point: anywhere
		await this.world.crash();
		const said = await answer;
		if (said?.workspace_session_id) this.nowOwnedBy(author, said);
		await this.world.settled();
		if ((await this.world.text(path)) === changed) this.model.publish(files, author);
		else this.model.files = files;
		return [path];
	}

	// ---- what has to hold --------------------------------------------------------------------

	async checkBlob(path) {
		const blob = this.model.blobs.get(path);
		assert.equal(await this.world.text(path), blob ? contentOf(blob) : null, `content of ${path}`);
		if (!blob) return;
		const owners = new Set(await this.world.owners(path));
		assert.equal(owners.size, 1, `${path} has one owner`);
		const line = new Line(contentOf(blob), blob.owners);
		blob.owners = this.judge(path, 0, line, [...owners][0]).owners;
	}

	async check(path) {
		if (path.endsWith('.bin')) {
			await this.checkBlob(path);
			return;
		}
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
		const owners = blame.ranges.flatMap(({ line_count, owner }) => Array(line_count).fill(owner));
		assert.equal(owners.length, file.lines.length, `${path}: lines with an owner`);
		file.lines = file.lines.map((line, i) => this.judge(path, i, line, owners[i]));
	}

	/** The line with the one owner that it has. */
	judge(path, i, line, owner) {
		const unknown = line.owners.filter((author) => !author.owner);
		let author = line.owners.find((one) => one.owner === owner);
		/* Neither a file tool nor a killed command says who it was: blame says it first, then always. */
		if (!author && unknown.length === 1) {
			[author] = unknown;
			assert.ok(!this.known.has(owner), `${path}:${i + 1} '${line.text}' is ${owner}'s, of ${author.name}`);
			author.owner = owner;
		}
		const names = line.owners.map((one) => `${one.owner ?? 'unknown'} (${one.name})`);
		assert.ok(author, `${path}:${i + 1} '${line.text}' is ${owner}'s, not ${names.join(' or ')}`);
		this.known.add(owner);
		this.nJudged++;
		this.nUnclear += line.owners.length > 1;
		return line.ownedBy(author);
	}

	known = new Set();

	async checkAll() {
		for (const path of [...this.model.files.keys(), ...this.model.blobs.keys()].sort()) await this.check(path);
		await this.checkModes();
		assert.equal(await this.world.damage(), '', 'verify');
	}

	async checkModes() {
		for (const dir of ['', ...this.model.directories()]) {
			const { entries } = await this.world.adminJson('ls', dir || '.');
			for (const { name, kind, mode } of entries) {
				const file = this.model.files.get(dir + name);
				if (file) assert.equal(`${kind} ${mode.toString(8)}`, `file ${file.mode.toString(8)}`, dir + name);
			}
		}
	}

	/** name: how often, of 100 */
	weights = {
		shell: 34, write: 10, edit: 9, parallel: 7, merge: 7, refuse: 4, refuseSession: 2, begin: 5, work: 8, publish: 5,
		squash: 3, collect: 1, restart: 1, crashUnder: 2, crashAnywhere: 2,
	};

	step() {
		let at = this.random.below(100);
		for (const [name, weight] of Object.entries(this.weights)) {
			if (at < weight) return name;
			at -= weight;
		}
		return 'shell';
	}

	async run(n) {
		this.nSteps = n;
		const name = this.step();
		const paths = await this[name]();
		this.log.push(`${n} ${name} ${paths ?? '(nothing to do)'}`);
		for (const path of new Set(paths ?? [])) await this.check(path);
		if (n % FULL_CHECK_EVERY === 0) await this.checkAll();
	}
}

test('contents and owners are those that the oracle knows', async (t) => {
	const model = new Model(new Random(SEED));
	const base = {};
	for (let i = 0; i < 12; i++) {
		const path = model.newName(DIRECTORIES);
		model.set(path, model.lines(ORIGINAL, model.random.between(3, 25)));
		base[path] = model.content(path);
	}
	const world = await World.make(t, { files: base });
	const oracle = new Oracle(world, model);
	oracle.known.add(ORIGINAL.owner);
	const end = Date.now() + SECONDS * 1000;
	let n = 0;
	try {
		for (; Date.now() < end; n++) await oracle.run(n);
		await oracle.checkAll();
	} catch (error) {
		error.message = `SBX_ORACLE_SEED=${SEED}, step ${n}: ${error.message}\nlast steps:\n${oracle.log.slice(-12).join('\n')}`;
		throw error;
	}
	assert.ok(n > 5, `only ${n} steps in ${SECONDS} s`);
	t.diagnostic(`seed ${SEED}: ${n} steps, ${oracle.nJudged} lines judged, ${oracle.nUnclear} of them with a choice`);
});
