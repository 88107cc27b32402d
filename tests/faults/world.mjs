// SPDX-License-Identifier: MIT
// What the fault tests and the oracle share: a state directory with one sandbox, a client that
// speaks bare JSON-RPC (no packages needed), the daemon's processes, strace put on them, and what
// has to hold whatever happened.
import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const buildDir = resolve(process.env.SBX_BUILD_DIR ?? join(here, '../../build'));
const serverPath = join(buildDir, 'sandbox-mcp');
const adminPath = join(buildDir, 'sbx-admin');
if (!existsSync(serverPath)) throw new Error(`no ${serverPath}: build first, or set SBX_BUILD_DIR`);

const WAIT_MS = 120_000; // for anything that is expected; a miss is a failure, not a pause

/** An integer from the environment. */
export function setting(name, otherwise) {
	const text = process.env[name];
	if (text === undefined || text === '') return otherwise;
	assert.match(text, /^[0-9]+$/, `${name} must be a number`);
	return Number(text);
}

export async function until(probe, what, ms = WAIT_MS) {
	const end = Date.now() + ms;
	for (;;) {
		const value = await probe();
		if (value) return value;
		assert.ok(Date.now() < end, `${what}: not within ${ms} ms`);
		await new Promise((next) => setTimeout(next, 10));
	}
}

function within(promise, what) {
	let timer;
	const late = new Promise((_, reject) => {
		timer = setTimeout(() => reject(new Error(`${what}: nothing within ${WAIT_MS} ms`)), WAIT_MS);
	});
	return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** One sandbox-mcp and the calls that wait for its answers. */
class Client {
	constructor(world) {
		this.world = world;
		this.waiting = new Map();
		this.nextId = 1;
		this.process = spawn(serverPath, ['--set', 'runtime'], {
			env: world.env,
			stdio: ['pipe', 'pipe', 'ignore'],
		});
		this.exited = new Promise((done) => this.process.on('exit', done));
		this.process.stdin.on('error', () => {}); // a server that has gone is seen by its exit
		createInterface({ input: this.process.stdout }).on('line', (line) => {
			const answer = JSON.parse(line);
			this.waiting.get(answer.id)?.(answer);
			this.waiting.delete(answer.id);
		});
	}

	send(method, params) {
		const id = this.nextId++;
		const answer = new Promise((done) => this.waiting.set(id, done));
		this.process.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
		return within(answer, method);
	}

	async begin() {
		await this.send('initialize', {
			protocolVersion: '2025-06-18',
			capabilities: {},
			clientInfo: { name: 'sbx-faults', version: '1' },
		});
		const note = { jsonrpc: '2.0', method: 'notifications/initialized' };
		this.process.stdin.write(`${JSON.stringify(note)}\n`);
	}

	async call(name, args) {
		const params = { name, arguments: { sandbox_id: this.world.id, ...args } };
		const answer = await this.send('tools/call', params);
		assert.ok(answer.result, JSON.stringify(answer));
		return answer.result.structuredContent;
	}

	async end() {
		this.process.stdin.end();
		await within(this.exited, 'the end of sandbox-mcp');
	}
}

/** A sandbox in a state directory of its own. */
export class World {
	/** parent: where the state directory stands; files: {path: content} of the project. */
	static async make(t, { files = {}, parent, stateName = 'state' } = {}) {
		const world = new World();
		world.dir = await mkdtemp(join(tmpdir(), 'sbx-faults-'));
		world.stateDir = join(parent ?? world.dir, stateName);
		world.env = { ...process.env, SBX_STATE_DIR: world.stateDir };
		world.id = 'box';
		t.after(() => world.remove());
		const workspace = join(world.dir, 'project');
		await mkdir(workspace);
		for (const [path, content] of Object.entries(files)) {
			await mkdir(dirname(join(workspace, path)), { recursive: true });
			await writeFile(join(workspace, path), content);
		}
		await mkdir(world.stateDir, { recursive: true });
		await world.admin('create', '--workspace', workspace, '--id', world.id);
		return world;
	}

	/** The same sandbox in another state directory, such as a copy of this one; end it with remove(). */
	async elsewhere(stateDir) {
		const world = new World();
		world.dir = await mkdtemp(join(tmpdir(), 'sbx-faults-'));
		world.stateDir = stateDir;
		world.env = { ...process.env, SBX_STATE_DIR: stateDir };
		world.id = this.id;
		return world;
	}

	get home() {
		return join(this.stateDir, this.id);
	}

	/** {code, stdout, stderr} of sbx-admin, whatever it says. */
	tryAdmin(...args) {
		return new Promise((done) => {
			execFile(
				adminPath,
				args,
				{ env: this.env, maxBuffer: 64 << 20, timeout: WAIT_MS },
				(error, stdout, stderr) => done({ code: error ? error.code : 0, stdout, stderr }),
			);
		});
	}

	async admin(...args) {
		const { code, stdout, stderr } = await this.tryAdmin(...args);
		assert.equal(code, 0, `sbx-admin ${args.join(' ')}: ${stderr}${stdout}`);
		return stdout;
	}

	async adminJson(verb, ...args) {
		return JSON.parse(await this.admin(...verb.split(' '), this.id, ...args, '--json'));
	}

	/** The client of the world, made when needed. */
	async client() {
		if (!this.connected) {
			this.connected = new Client(this);
			await this.connected.begin();
		}
		return this.connected;
	}

	async call(name, args) {
		return (await this.client()).call(name, args);
	}

	/** A second client, which ends with the world. */
	async anotherClient() {
		const client = new Client(this);
		await client.begin();
		(this.others ??= []).push(client);
		return client;
	}

	/** A command to its end; its result may be a refusal. */
	async exec(cmd, more = {}) {
		let state = await this.call('exec_command', { cmd, yield_time_ms: 50_000, ...more });
		while (state.status === 'running')
			state = await this.call('write_command_stdin', {
				command_session_id: state.command_session_id,
				stdin: '',
				yield_time_ms: 50_000,
			});
		return state;
	}

	/** The published text of a short file, or null. */
	async text(path) {
		const { error, content, truncated } = await this.call('file_read', { path, limit: 2000 });
		assert.ok(!truncated, `${path} is too long for this`);
		if (!error) return content;
		assert.equal(error.kind, 'not_found', `${path}: ${JSON.stringify(error)}`);
		return null;
	}

	async owners(path) {
		const result = await this.call('file_blame', { path });
		assert.ok(result.ranges, JSON.stringify(result));
		return result.ranges.flatMap(({ line_count, owner }) => Array(line_count).fill(owner));
	}

	/** Damage in words, or nothing. */
	async damage() {
		const { code, stdout, stderr } = await this.tryAdmin('verify', this.id);
		return code === 0 ? '' : `${stderr}${stdout}`;
	}

	// ---- processes -----------------------------------------------------------------------

	/** Pids of this world's processes with this name; only they have its state directory. */
	async pids(comm) {
		const pids = [];
		const mark = `SBX_STATE_DIR=${this.stateDir}\0`;
		for (const name of await readdir('/proc')) {
			if (!/^[0-9]+$/.test(name)) continue;
			const about = await readFile(`/proc/${name}/comm`, 'utf8').catch(() => '');
			if (about.trim() !== comm) continue;
			const env = await readFile(`/proc/${name}/environ`, 'latin1').catch(() => '');
			if (env.includes(mark)) pids.push(Number(name));
		}
		return pids;
	}

	/** Makes sure that the daemon runs; gives the pid of it. */
	async start() {
		return (await this.adminJson('inspect')).daemon_pid;
	}

	/** Waits until what the last daemon left is published. */
	async settled() {
		await until(async () => {
			const { publications_pending, running_command_count } = await this.adminJson('inspect');
			return publications_pending === 0 && running_command_count === 0;
		}, 'publications end');
	}

	/** kill -9 for the daemon, and the client with its broken connections. */
	async crash() {
		/* again and again: a call that is under way may start another one */
		await until(async () => {
			const pids = await this.pids('sandboxd');
			pids.forEach(kill);
			return !pids.length;
		}, 'the daemon is gone');
		await this.disconnect();
	}

	async disconnect() {
		if (!this.connected) return;
		const { connected } = this;
		this.connected = undefined;
		await connected.end();
	}

	/** strace on running processes; gives a function that takes it off and says what it saw. */
	async trace(pids, ...options) {
		const out = join(this.dir, `trace-${(this.nTraces = (this.nTraces ?? 0) + 1)}`);
		const targets = pids.flatMap((pid) => ['-p', String(pid)]);
		const tracer = spawn('strace', ['-o', out, ...options, ...targets], {
			stdio: ['ignore', 'ignore', 'pipe'],
		});
		const gone = new Promise((done) => tracer.on('exit', done));
		let said = '';
		tracer.stderr.on('data', (text) => (said += text));
		await until(
			() => said.split(' attached').length > pids.length || tracer.exitCode !== null,
			'strace is attached',
		);
		return async () => {
			tracer.kill('SIGINT'); // lets its tracees go
			await within(gone, 'the end of strace');
			return readFile(out, 'utf8');
		};
	}

	/**
	 * The calls that a process makes while run() goes on, in their order: [{call, n}], the n-th of
	 * its kind, as strace's inject=...:when=n counts them. Of several processes, the busiest one's.
	 */
	async callPoints(comm, calls, run) {
		const untrace = await this.trace(await this.pids(comm), '-e', `trace=${calls}`);
		await run();
		const points = {};
		for (const line of (await untrace()).split('\n')) {
			const [, pid = '', call] = /^([0-9]+ +)?([a-z_0-9]+)\(/.exec(line) ?? [];
			if (!call) continue;
			const list = (points[pid] ??= []);
			list.push({ call, n: 1 + list.filter((point) => point.call === call).length });
		}
		return Object.values(points).reduce((most, list) => (list.length > most.length ? list : most), []);
	}

	async remove() {
		await this.disconnect();
		for (const client of this.others ?? []) await client.end();
		const { code, stderr } = await this.tryAdmin('destroy', this.id, '--force');
		if (code !== 0) console.error(stderr);
		await rm(this.stateDir, { recursive: true, force: true });
		await rm(this.dir, { recursive: true, force: true });
	}
}

function kill(pid) {
	try {
		process.kill(pid, 'SIGKILL');
	} catch (error) {
		if (error.code !== 'ESRCH') throw error; // gone by itself
	}
}

/** Why a program is missing, for a test to be skipped by name; else false. */
export function missing(...programs) {
	for (const program of programs)
		if (spawnSync('which', [program]).status !== 0) return `${program} is not installed`;
	return false;
}

/** Up to n of a list, spread evenly, both ends among them. */
export function spread(list, n) {
	const count = Math.min(list.length, n);
	const at = (i) => (count < 2 ? 0 : Math.round((i * (list.length - 1)) / (count - 1)));
	return Array.from({ length: count }, (_, i) => list[at(i)]);
}
