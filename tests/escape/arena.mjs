// SPDX-License-Identifier: MIT
// What the escape tests share: the probes, compiled on the host, and sessions that run them.
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { connect, here, run, State } from '../support.mjs';

const CLIENT = 'sdk 1.x, initialize';
const PROBES = ['attack', 'tool'];

/** Why a test that needs these programs of the host is skipped, or false. */
export function needs(...programs) {
	const missing = programs.filter(
		(name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0,
	);
	return missing.length ? `missing on this host: ${missing.join(', ')}` : false;
}

async function compile(dir) {
	await mkdir(dir);
	for (const name of PROBES)
		await promisify(execFile)('gcc', [
			'-std=gnu17', '-D_GNU_SOURCE', '-O1', '-Wall', '-Wextra', '-Werror',
			'-o', join(dir, name), join(here, 'escape/probes', `${name}.c`),
		]);
	return dir;
}

/** A managed session in which the probes are /tmp/attack and /tmp/tool. */
class Session {
	constructor(arena, sandbox_id, id) {
		Object.assign(this, { arena, sandbox_id, id });
	}

	/** The result of a command that has ended. */
	result(cmd, more = {}) {
		return run(this.arena.client, this.sandbox_id, cmd, { workspace_session_id: this.id, ...more });
	}

	/** What it printed, in the terminal's rows. */
	async output(cmd) {
		return (await this.result(cmd)).output.trimEnd();
	}

	async expect(cmd, expected) {
		assert.equal(await this.output(cmd), expected, cmd);
	}

	/** Starts a command and leaves it running. */
	async leave(cmd) {
		return this.arena.tool('exec_command', {
			sandbox_id: this.sandbox_id, cmd, workspace_session_id: this.id, yield_time_ms: 0,
		});
	}
}

/** A state directory with the probes, a client, and sandboxes whose workspaces hold the probes. */
export class Arena {
	static async make(t) {
		const state = await State.make(t);
		const bin = await compile(join(state.dir, 'bin'));
		const files = {};
		for (const name of PROBES) files[name] = await readFile(join(bin, name));
		const client = await connect(t, CLIENT, state.env);
		return Object.assign(new Arena(), { state, bin, files, client });
	}

	sandbox(id, files = {}) {
		return this.state.sandbox(id, { ...this.files, ...files });
	}

	async session(sandbox_id) {
		const made = await this.state.adminJson('session', 'create', sandbox_id);
		const session = new Session(this, sandbox_id, made.workspace_session_id);
		const { exit_code, output } = await session.result('install -m 755 attack tool /tmp/');
		assert.equal(exit_code, 0, output);
		return session;
	}

	/** The structured content of a call, whether it succeeded or not. */
	async tool(name, args) {
		return (await this.client.callTool({ name, arguments: args })).structuredContent;
	}

	/** What a probe prints when it runs on the host: shows that the attack is a real one. */
	async onHost(name, ...args) {
		return (await promisify(execFile)(join(this.bin, name), args)).stdout.trimEnd();
	}
}
