// SPDX-License-Identifier: MIT
// One sandbox with a connected server, and the command tools as functions: a command is started,
// fed, read and brought to its end in one line each.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { RawServer, State, until } from '../support.mjs';

export const LONG = process.env.SBX_LONG === '1'; // the long form of the tests that have one
export const YIELD_MAX = 50_000;
const FINISH_MS = 600_000; // for a command that is expected to end
export const sleep = (ms) => new Promise((next) => setTimeout(next, ms));
export const seconds = (since) => (performance.now() - since) / 1000;

export function median(values) {
	const sorted = [...values].sort((a, b) => a - b);
	return sorted[Math.floor(sorted.length / 2)];
}

export class Lab {
	static async make(t, files = {}, id = 'lab') {
		const lab = new Lab();
		lab.t = t;
		lab.state = await State.make(t);
		lab.id = await lab.state.sandbox(id, files);
		lab.server = await lab.connect();
		return lab;
	}

	/** One more client of the sandbox. */
	async connect() {
		const server = new RawServer(this.t, { env: this.state.env });
		await server.initialize();
		return server;
	}

	result(name, args, server = this.server) {
		return server.call(name, { sandbox_id: this.id, ...args });
	}

	async tool(name, args, server) {
		const result = await this.result(name, args, server);
		assert.ok(!result.isError, `${name}: ${JSON.stringify(result.structuredContent)}`);
		return result.structuredContent;
	}

	/** The error of a call that has to be refused, as this kind. */
	async refused(kind, name, args) {
		const result = await this.result(name, args);
		assert.equal(result.isError, true, JSON.stringify(result.structuredContent));
		assert.equal(result.structuredContent.error.kind, kind,
			JSON.stringify(result.structuredContent));
		return result.structuredContent.error;
	}

	/** Runs to its end, if that comes within the longest wait. */
	exec(cmd, more = {}, server) {
		return this.tool('exec_command', { cmd, yield_time_ms: YIELD_MAX, ...more }, server);
	}

	start(cmd, more = {}) {
		return this.exec(cmd, { yield_time_ms: 0, ...more });
	}

	stdin(command, text, more = {}) {
		const { command_session_id } = command;
		return this.tool('write_command_stdin',
			{ command_session_id, stdin: text, yield_time_ms: 0, ...more });
	}

	lines(command, start_offset = 0, limit = 1000, server) {
		const { command_session_id } = command;
		return this.tool('read_command_lines', { command_session_id, start_offset, limit },
			server);
	}

	/** Feeds text and waits for the end; output is what came since the last answer. */
	async finish(command, text = '') {
		const end = Date.now() + FINISH_MS;
		let state = await this.stdin(command, text, { yield_time_ms: YIELD_MAX });
		let { output } = state;
		while (state.status === 'running') {
			assert.ok(Date.now() < end, `it does not end; so far: ${output.slice(-500)}`);
			state = await this.stdin(command, '', { yield_time_ms: YIELD_MAX });
			output += state.output;
		}
		return { ...state, output };
	}

	/** Reads rows until they contain text; gives them all. */
	async shows(command, text) {
		const fits = async () => {
			const { output } = await this.lines(command);
			return output.includes(text) ? output : null;
		};
		return until(fits, `${JSON.stringify(text)} in the output`);
	}

	/** All rows, page by page. */
	async *pages(command) {
		for (let at = 0; ;) {
			const page = await this.lines(command, at);
			assert.equal(page.start_offset, at);
			if (page.end_offset === at) return;
			yield page;
			at = page.end_offset;
		}
	}

	async session() {
		return (await this.admin('session', 'create', this.id)).workspace_session_id;
	}

	admin(...args) {
		return this.state.adminJson(...args);
	}

	/** The message of an sbx-admin call that has to fail. */
	async adminFails(...args) {
		try {
			await this.state.admin(...args);
		} catch (error) {
			assert.equal(error.code, 1, error.stderr);
			return error.stderr;
		}
		assert.fail(`sbx-admin ${args.join(' ')} did not fail`);
	}

	async daemonPid() {
		return (await this.admin('inspect', this.id)).daemon_pid;
	}

	/** kill -9 of sandboxd; returns when its last process is gone, so that a start finds all. */
	async crash() {
		const pid = await this.daemonPid();
		const family = descendants(pid);
		process.kill(pid, 'SIGKILL');
		await until(() => [pid, ...family].every((p) => !isAlive(p)), 'the end of sandboxd');
	}

	sandboxDir() {
		return join(this.state.env.SBX_STATE_DIR, this.id);
	}
}

// ---- what the host sees ----------------------------------------------------------------------

/** State letter, parent and name of a process; null when there is none. */
export function processInfo(pid) {
	try {
		const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
		const rest = text.slice(text.lastIndexOf(')') + 2).split(' ');
		const name = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'));
		return { pid: Number(pid), state: rest[0], parent: Number(rest[1]), name };
	} catch {
		return null;
	}
}

export const isAlive = (pid) => !['Z', 'X', undefined].includes(processInfo(pid)?.state);

export function processes() {
	return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(processInfo)
		.filter(Boolean);
}

/** All processes below pid, zombies too. */
export function descendants(pid) {
	const all = processes();
	const found = new Set([pid]);
	for (let n = 0; n !== found.size;) {
		n = found.size;
		for (const p of all) if (found.has(p.parent)) found.add(p.pid);
	}
	found.delete(pid);
	return [...found];
}

const WORKERS_MAX = 16; // POOL_WORKERS_MAX: sandboxd forks them as work comes, and keeps them

/** What grows when something leaks: of sandboxd and everything below it, but for its workers. */
export function footprint(pid) {
	const family = [pid, ...descendants(pid)].map(processInfo).filter(Boolean);
	const fds = (p) => readdirSync(`/proc/${p}/fd`).length;
	const spawner = family.find((p) => p.name === 'sbx-spawner').pid;
	const workers = family.filter((p) => p.name === 'sbx-worker').length;
	assert.ok(workers <= WORKERS_MAX, `${workers} workers`);
	return {
		processes: family.length - workers,
		zombies: family.filter((p) => p.state === 'Z').length,
		daemonFds: fds(pid) - workers, // a socket to each
		spawnerFds: fds(spawner),
		spawnerMounts: readFileSync(`/proc/${spawner}/mountinfo`, 'utf8').split('\n').length,
	};
}

export function residentKiB(pid) {
	return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
}

export function mountsBelow(dir) {
	return readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
		.filter((line) => line.includes(dir)).length;
}

/** Descriptors of pid by what they are, for the message of a test that found more. */
export function describeFds(pid) {
	const kinds = {};
	for (const fd of readdirSync(`/proc/${pid}/fd`)) {
		let to;
		try {
			to = readlinkSync(`/proc/${pid}/fd/${fd}`).replace(/[0-9a-z_]{12,}|\d+/g, '*');
		} catch {
			continue;
		}
		kinds[to] = (kinds[to] ?? 0) + 1;
	}
	return JSON.stringify(kinds);
}
