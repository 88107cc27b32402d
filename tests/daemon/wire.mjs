// SPDX-License-Identifier: MIT
// A client of sandboxd's socket that sends frames (include/sbx/wire.h) by itself, so that a test can
// ask many things at once, not read, or go away.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { within } from '../support.mjs';

const HEADER_SIZE = 16;
const REQUEST = 1;
const RESULT = 2;
const ERROR = 3;
const CHUNK = 5;

function frame(kind, id, payload) {
	const header = Buffer.alloc(HEADER_SIZE);
	header.writeUInt32LE(payload.length, 0);
	header.writeUInt32LE(kind, 4);
	header.writeBigUInt64LE(BigInt(id), 8);
	return Buffer.concat([header, payload]);
}

export class Wire {
	/** Connected and greeted. The daemon must run (any verb of sbx-admin starts it). */
	static async connect(t, state, id) {
		const path = join(state.env.SBX_STATE_DIR, id, 'sandboxd.sock');
		const wire = new Wire(createConnection(path), id);
		t.after(() => wire.close());
		await within(wire.greeted, 'the greeting');
		return wire;
	}

	constructor(socket, sandboxId) {
		this.socket = socket;
		this.sandboxId = sandboxId;
		this.rest = Buffer.alloc(0);
		this.nextId = 1;
		this.waiting = new Map();
		this.greeted = new Promise((done) => this.waiting.set(0, { done, chunks: [] }));
		this.ended = new Promise((done) => socket.on('close', done));
		socket.on('close', () => this.answerAll({ kind: 'closed', message: 'the socket is closed' }));
		socket.on('data', (bytes) => this.take(bytes));
		socket.on('error', () => {}); // seen as the end
	}

	take(bytes) {
		this.rest = Buffer.concat([this.rest, bytes]);
		while (this.rest.length >= HEADER_SIZE) {
			const end = HEADER_SIZE + this.rest.readUInt32LE(0);
			if (this.rest.length < end) return;
			const kind = this.rest.readUInt32LE(4);
			const id = Number(this.rest.readBigUInt64LE(8));
			const payload = this.rest.subarray(HEADER_SIZE, end);
			this.rest = this.rest.subarray(end);
			this.handle(kind, id, payload);
		}
	}

	handle(kind, id, payload) {
		const request = this.waiting.get(id);
		assert.ok(request, `an answer to request ${id}, which is not in flight`);
		if (kind === CHUNK) {
			request.chunks.push(payload);
			return;
		}
		assert.ok(kind === RESULT || kind === ERROR, `frame kind ${kind}`);
		this.waiting.delete(id);
		const body = JSON.parse(payload);
		request.done(kind === RESULT ? { result: body, chunks: request.chunks } : { error: body });
	}

	/** What is not answered when the connection ends never will be. */
	answerAll(error) {
		for (const { done } of this.waiting.values()) done({ error });
		this.waiting.clear();
	}

	/** {result, chunks} or {error}. */
	ask(op, args = {}) {
		const id = this.nextId++;
		const answer = new Promise((done) => this.waiting.set(id, { done, chunks: [] }));
		const text = JSON.stringify({ op, args: { ...args, sandbox_id: this.sandboxId } });
		this.socket.write(frame(REQUEST, id, Buffer.from(text)));
		return within(answer, `the answer to ${op}`);
	}

	async result(op, args) {
		const { result, error } = await this.ask(op, args);
		assert.ok(result, JSON.stringify(error));
		return result;
	}

	close() {
		this.socket.destroy();
	}
}

// ---- processes -------------------------------------------------------------------------------

async function processes() {
	const found = [];
	for (const pid of await readdir('/proc')) {
		if (!/^\d+$/.test(pid)) continue;
		try {
			const stat = await readFile(`/proc/${pid}/stat`, 'latin1');
			const [, name, rest] = stat.match(/^\d+ \((.*)\) (.*)$/s);
			const fields = rest.split(' ');
			const ticks = Number(fields[11]) + Number(fields[12]);
			found.push({ pid: Number(pid), parent: Number(fields[1]), name, ticks });
		} catch {
			// it has ended meanwhile
		}
	}
	return found;
}

/** Every process below pid, with its parent. */
export async function descendants(pid) {
	const all = await processes();
	const below = new Set([pid]);
	for (let size = 0; size !== below.size; ) {
		size = below.size;
		for (const each of all) if (below.has(each.parent)) below.add(each.pid);
	}
	below.delete(pid);
	return all.filter((each) => below.has(each.pid));
}

/** CPU time of a process in ms. */
export async function cpuMs(pid) {
	const one = (await processes()).find((each) => each.pid === pid);
	return one.ticks * 10; // USER_HZ is 100 on every Linux
}

/** Resident memory of a process in bytes. */
export async function residentBytes(pid) {
	const status = await readFile(`/proc/${pid}/status`, 'utf8');
	return Number(status.match(/^VmRSS:\s+(\d+) kB/m)[1]) * 1024;
}
