// SPDX-License-Identifier: MIT
// A soak: several clients do everything at once, at random, for some time (SBX_SOAK_SECONDS, else
// 20), with crashes of sandboxd in the long run. Each checks what it gets; at the end nothing is
// left. The seed is printed; SBX_SOAK_SEED repeats its choices.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { footprint, Lab, residentKiB, sleep } from './lab.mjs';
import { sanitized, until } from '../support.mjs';

const SECONDS = Number(process.env.SBX_SOAK_SECONDS ?? 20);
const SEED = Number(process.env.SBX_SOAK_SEED ?? Date.now() % 1_000_000);
const CLIENTS = 4;
const LAYERS_MAX = 64; // attached for the head and for sessions on earlier ones

/** A small generator of numbers below n (xorshift). */
function chooser(seed) {
	let x = (seed * 2654435761) >>> 0 || 1;
	return (n) => {
		x ^= x << 13;
		x >>>= 0;
		x ^= x >>> 17;
		x ^= x << 5;
		x >>>= 0;
		return x % n;
	};
}

/** One client's things to do. Each checks all that it can know. */
const deeds = {
	async quick({ lab, server, choose }) {
		const n = choose(3000);
		const done = await lab.exec(`seq 1 ${n}; exit ${n % 7}`, {}, server);
		assert.deepEqual([done.exit_code, done.total_lines], [n % 7, n]);
	},
	async write({ lab, server, name, choose }) {
		const file = `${name}-${choose(20)}`;
		const done = await lab.exec(`date +%s%N >${file}; cat ${file}`, {}, server);
		assert.equal(done.status, 'ok');
		assert.equal(done.publish.no_op, false, JSON.stringify(done.publish));
	},
	async feed({ lab, server, choose }) {
		const command = await lab.exec('while read -r x; do echo "got $x"; done', { yield_time_ms: 0 }, server);
		const n = 1 + choose(30);
		const text = Array.from({ length: n }, (_, i) => `${i}\n`).join('');
		const { command_session_id } = command;
		const done = await lab.tool('write_command_stdin',
			{ command_session_id, stdin: `${text}\u0004`, yield_time_ms: 50_000 }, server);
		assert.equal(done.output, text.replace(/^/gm, 'got ').replace(/got $/, ''));
	},
	async interrupt({ lab, server }) {
		const command = await lab.exec('exec sleep 300', { yield_time_ms: 0 }, server);
		const { command_session_id } = command;
		const done = await lab.tool('write_command_stdin',
			{ command_session_id, stdin: '\u0003', yield_time_ms: 50_000 }, server);
		assert.equal(done.status, 'cancelled');
	},
	async timeout({ lab, server, choose }) {
		const done = await lab.exec('sleep 300 & sleep 300', { timeout_ms: 50 + choose(200) }, server);
		assert.equal(done.status, 'timed_out');
	},
	async flood({ lab, server, choose }) {
		const done = await lab.exec('yes', { timeout_ms: 100 + choose(200) }, server);
		assert.equal(done.status, 'timed_out');
	},
	async background({ lab, server }) {
		const done = await lab.exec('(setsid sleep 300 &); sleep 300 & echo up', {}, server);
		assert.deepEqual([done.status, done.output], ['ok', 'up\n']);
	},
	async join({ lab, server }) {
		const first = await lab.exec('echo one >/tmp/f; echo up; read x', { yield_time_ms: 0 }, server);
		await lab.shows(first, 'up');
		const inside = { workspace_session_id: first.workspace_session_id };
		assert.equal((await lab.exec('cat /tmp/f', inside, server)).output, 'one\n');
		const { command_session_id } = first;
		const done = await lab.tool('write_command_stdin',
			{ command_session_id, stdin: '\n', yield_time_ms: 50_000 }, server);
		assert.equal(done.status, 'ok');
	},
	async managed({ lab, server, name, choose }) {
		const id = await lab.session();
		const inside = { workspace_session_id: id };
		const file = `m-${name}-${choose(5)}`;
		await lab.exec(`date +%s%N >${file}`, inside, server);
		await lab.tool('file_read', { path: file, ...inside }, server);
		await lab.admin('session', choose(2) ? 'publish' : 'discard', lab.id, id);
	},
	async tools({ lab, server, name }) {
		await lab.tool('file_write', { path: `t-${name}`, content: `${Date.now()}\n` }, server);
		const { ranges } = await lab.tool('file_blame', { path: `t-${name}` }, server);
		assert.equal(ranges.length, 1);
	},
};

async function client(lab, index, until_ms, counts) {
	const choose = chooser(SEED + index);
	const names = Object.keys(deeds);
	const server = await lab.connect();
	while (performance.now() < until_ms) {
		const deed = names[choose(names.length)];
		try {
			await deeds[deed]({ lab, server, choose, name: `c${index}` });
		} catch (error) {
			error.message = `${deed} (client ${index}, seed ${SEED}): ${error.message}`;
			throw error;
		}
		counts[deed] = (counts[deed] ?? 0) + 1;
	}
	assert.deepEqual(await server.end(), { code: 0, signal: null });
}

test(`a soak of ${SECONDS} s`, async (t) => {
	const lab = await Lab.make(t);
	const pid = await lab.daemonPid();
	for (let i = 0; i < 5; i++) await lab.exec('true');
	await sleep(300);
	const counts = {};
	const all = async (choices) => {
		const end = performance.now() + SECONDS * 500;
		await Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(lab, choices + i, end, counts)));
		await lab.exec('true');
	};
	// the first half fills what is kept on purpose: workers, control groups, 64 commands, 40 layers
	await all(0);
	await sleep(1000);
	const before = footprint(pid), kib = residentKiB(pid);
	await all(CLIENTS);
	t.diagnostic(`seed ${SEED}: ${JSON.stringify(counts)}`);

	await t.test('leaves no session, process or descriptor', async () => {
		await until(async () => (await lab.admin('session', 'list', lab.id)).sessions.length === 0, 'the end of all sessions');
		await lab.exec('true');
		await until(() => {
			const now = footprint(pid);
			return now.zombies === 0 && now.processes <= before.processes + 6 &&
				now.daemonFds <= before.daemonFds + 40 && now.spawnerFds <= before.spawnerFds + 12 &&
				now.spawnerMounts <= LAYERS_MAX + 8;
		}, 'the end of what it used', 20_000).catch((error) => {
			error.message += `: ${JSON.stringify(before)}, now ${JSON.stringify(footprint(pid))}`;
			throw error;
		});
		const left = readdirSync(join(lab.sandboxDir(), 'sessions'));
		assert.ok(left.length <= 2, left.join(' '));
	});
	await t.test('and no memory', { skip: sanitized }, () => {
		const grown = residentKiB(pid) - kib;
		t.diagnostic(`sandboxd grew by ${grown} KiB`);
		assert.ok(grown < 24 << 10, `${grown} KiB`);
	});
	await t.test('the store is whole', async () => {
		await lab.state.admin('verify', lab.id);
	});
	await t.test('a crash in the end loses nothing', async () => {
		const files = (await lab.exec('ls -1 | sort | sha256sum')).output;
		await lab.crash();
		lab.server = await lab.connect();
		assert.equal((await lab.exec('ls -1 | sort | sha256sum')).output, files);
	});
});
