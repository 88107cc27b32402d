// SPDX-License-Identifier: MIT
// What the tests share: the programs under test, a sandbox of one's own, a client that sends raw
// lines, and the two official clients behind one face.
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernTransport } from '@modelcontextprotocol/client/stdio';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const here = dirname(fileURLToPath(import.meta.url));
const candidates = [process.env.SBX_BUILD_DIR, join(here, '..'), join(here, '../../build')];
const buildDir = candidates.find((dir) => dir && existsSync(join(dir, 'sandbox-mcp')));
if (!buildDir) throw new Error('no sandbox-mcp found: build first, or set SBX_BUILD_DIR');

export const serverPath = resolve(buildDir, 'sandbox-mcp');
const adminPath = resolve(buildDir, 'sbx-admin');
export const contract = JSON.parse(await readFile(join(here, 'runtime-tools.json'), 'utf8'));
export const clientInfo = { name: 'sbx-tests', version: '1.0.0' };

/** For {skip}: memory says nothing where what is freed is kept for a while. */
export const sanitized =
	!!process.env.SBX_SANITIZED && 'needs a build without sanitizers: it would measure their allocator';

const WAIT_MS = 120_000; // for anything that is expected; a miss is a failure, not a pause

/** Rejects with what was awaited when promise takes too long. */
export function within(promise, what, ms = WAIT_MS) {
	let timer;
	const late = new Promise((_, reject) => {
		timer = setTimeout(() => reject(new Error(`${what}: nothing within ${ms} ms`)), ms);
	});
	return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Calls probe until it gives something true. */
export async function until(probe, what, ms = WAIT_MS) {
	const end = Date.now() + ms;
	for (;;) {
		const value = await probe();
		if (value) return value;
		assert.ok(Date.now() < end, `${what}: not within ${ms} ms`);
		await new Promise((next) => setTimeout(next, 20));
	}
}

// ---- a state directory and sandboxes in it ---------------------------------------------------

export class State {
	static async make(t) {
		const dir = await mkdtemp(join(tmpdir(), 'sbx-mcp-'));
		await chmod(dir, 0o755); // so that another user's refusal is sandboxd's, not this mode's
		const state = new State(dir);
		t.after(() => state.remove());
		return state;
	}

	constructor(dir) {
		this.dir = dir;
		this.env = { ...process.env, SBX_STATE_DIR: join(dir, 'state') };
		this.ids = [];
	}

	async admin(...args) {
		const { stdout } = await promisify(execFile)(adminPath, args, {
			env: this.env,
			maxBuffer: 64 << 20,
		});
		return stdout;
	}

	async adminJson(...args) {
		return JSON.parse(await this.admin(...args, '--json'));
	}

	/** A sandbox with these files ({path: content}) and options of create; gives its id. */
	async sandbox(id, files = {}, ...options) {
		const workspace = join(this.dir, `workspace-${id}`);
		await mkdir(workspace);
		for (const [path, content] of Object.entries(files)) {
			await mkdir(dirname(join(workspace, path)), { recursive: true });
			await writeFile(join(workspace, path), content);
		}
		await this.admin('create', '--workspace', workspace, '--id', id, '--json', ...options);
		this.ids.push(id);
		return id;
	}

	async remove() {
		for (const id of this.ids) await this.admin('destroy', id, '--force');
		await rm(this.dir, { recursive: true, force: true });
	}
}

// ---- raw lines -------------------------------------------------------------------------------

export const META = {
	'io.modelcontextprotocol/protocolVersion': '2026-07-28',
	'io.modelcontextprotocol/clientCapabilities': {},
};

export class RawServer {
	constructor(t, { args = ['--set', 'runtime'], env = process.env, stdio, uid } = {}) {
		this.process = spawn(serverPath, args, {
			env,
			uid,
			gid: uid,
			stdio: stdio ?? ['pipe', 'pipe', 'pipe'],
		});
		this.exited = new Promise((done) => {
			this.process.on('exit', (code, signal) => done({ code, signal }));
		});
		this.lines = [];
		this.waiting = [];
		this.nextId = 1000;
		this.process.stdin?.on('error', () => {}); // a server that has gone is seen by its exit
		this.process.stderr?.resume();
		this.process.stdout?.setEncoding('utf8');
		let rest = '';
		this.process.stdout?.on('data', (text) => {
			const parts = (rest + text).split('\n');
			rest = parts.pop();
			this.lines.push(...parts);
			for (const wake of this.waiting.splice(0)) wake();
		});
		this.process.stdout?.on('close', () => {
			this.ended = true;
			if (rest) this.lines.push(`incomplete line: ${rest}`);
			for (const wake of this.waiting.splice(0)) wake();
		});
		t.after(() => this.process.kill('SIGKILL'));
	}

	/** A string or buffer goes out as it is, anything else as one line of JSON. */
	send(message) {
		const raw = typeof message === 'string' || Buffer.isBuffer(message);
		this.process.stdin.write(raw ? message : `${JSON.stringify(message)}\n`);
	}

	/** Takes the first line, waiting or not yet there, that fits; fails when none can come. */
	async line(fits = () => true, what = 'a line') {
		for (;;) {
			const i = this.lines.findIndex((line) => fits(line));
			if (i >= 0) return this.lines.splice(i, 1)[0];
			if (this.ended) throw new Error(`${what}: the server has gone`);
			await within(new Promise((wake) => this.waiting.push(wake)), what);
		}
	}

	/** The answer to the request with this id. */
	async answer(id) {
		const text = await this.line((line) => JSON.parse(line).id === id, `the answer to ${id}`);
		return JSON.parse(text);
	}

	async request(method, params) {
		const id = this.nextId++;
		this.send({ jsonrpc: '2.0', id, method, params });
		return this.answer(id);
	}

	/** Shows that the server lives and has answered everything before. */
	async ping() {
		assert.deepEqual((await this.request('ping')).result, {});
	}

	async initialize(protocolVersion = '2025-11-25') {
		const answer = await this.request('initialize', {
			protocolVersion,
			capabilities: {},
			clientInfo,
		});
		this.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
		return answer.result;
	}

	/** A tool's result, modern or not. */
	async call(name, args, meta) {
		const answer = await this.request('tools/call', { name, arguments: args, _meta: meta });
		assert.ok(answer.result, JSON.stringify(answer));
		return answer.result;
	}

	/** Closes stdin and waits for the end. */
	async end() {
		this.process.stdin.end();
		return within(this.exited, 'the end of the server');
	}
}

// ---- the official clients --------------------------------------------------------------------

function transportOptions(env) {
	return { command: serverPath, args: ['--set', 'runtime'], env, stderr: 'inherit' };
}

async function connectLegacy(env) {
	const client = new LegacyClient(clientInfo);
	await client.connect(new LegacyTransport(transportOptions(env)));
	return client;
}

async function connectModern(env, mode) {
	const client = new ModernClient(clientInfo, { versionNegotiation: { mode } });
	await client.connect(new ModernTransport(transportOptions(env)));
	return client;
}

/** How each client reaches each era. */
export const clients = {
	'sdk 1.x, initialize': connectLegacy,
	'client 2.x, initialize': (env) => connectModern(env, 'legacy'),
	'client 2.x, 2026-07-28': (env) => connectModern(env, { pin: '2026-07-28' }),
	'client 2.x, what it finds': (env) => connectModern(env, 'auto'),
};

/** A connected client that has read tools/list, so that it checks every result's schema. */
export async function connect(t, name, env) {
	const client = await within(clients[name](env), `${name} connects`);
	t.after(() => client.close());
	await client.listTools();
	return client;
}

/** The structured content of a call that has to succeed. */
export async function call(client, name, args) {
	const result = await client.callTool({ name, arguments: args });
	assert.ok(!result.isError, `${name}: ${JSON.stringify(result.structuredContent)}`);
	return result.structuredContent;
}

/** The error of a call that has to fail. */
export async function failure(client, name, args) {
	const result = await client.callTool({ name, arguments: args });
	assert.equal(result.isError, true, `${name}: ${JSON.stringify(result.structuredContent)}`);
	return result.structuredContent.error;
}

/** Waits on a running command; it may have ended since it was last heard of. */
async function follow(client, sandbox_id, { command_session_id, end_offset }) {
	const { structuredContent, isError } = await client.callTool({
		name: 'write_command_stdin',
		arguments: { sandbox_id, command_session_id, stdin: '', yield_time_ms: 30_000 },
	});
	if (!isError) return structuredContent;
	assert.equal(structuredContent.error.kind, 'operation_conflict', structuredContent.error.message);
	return call(client, 'read_command_lines', {
		sandbox_id, command_session_id, start_offset: end_offset, limit: 1000,
	});
}

/** Runs a command to its end, however long it takes. */
export async function run(client, sandbox_id, cmd, more = {}) {
	const first = { sandbox_id, cmd, yield_time_ms: 30_000, ...more };
	let state = await call(client, 'exec_command', first);
	let output = state.output;
	while (state.status === 'running') {
		state = await follow(client, sandbox_id, state);
		output += state.output;
	}
	return { ...state, output };
}
