// SPDX-License-Identifier: MIT
// Load: latencies stay, memory is bounded whatever is printed, and nothing is left behind by many
// commands (B50, B76, B77). SBX_LONG=1 runs the long forms.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { descendants, describeFds, footprint, Lab, LONG, median, mountsBelow, residentKiB, seconds, sleep } from './lab.mjs';
import { sanitized, until } from '../support.mjs';

const COMMANDS_KEPT_MAX = 4096;
const FLOOD_KIB = 24 << 10; // over the idle size, for any output
const SLACK = 10; // seconds, of a busy machine

async function latencies(lab, n, cmd = 'true') {
	const took = [];
	for (let i = 0; i < n; i++) {
		const begun = performance.now();
		assert.equal((await lab.exec(cmd)).status, 'ok');
		took.push(performance.now() - begun);
	}
	return took;
}

test('B44: many short commands leave nothing behind', async (t) => {
	const lab = await Lab.make(t);
	const n = LONG ? 10_000 : 500;
	const pid = await lab.daemonPid();
	const settle = async () => {
		await lab.exec('true');
		await sleep(300); // workers that only remove old directories
		return { ...footprint(pid), hostMounts: mountsBelow(lab.state.dir),
			sessions: readdirSync(join(lab.sandboxDir(), 'sessions')).length,
			layers: readdirSync(join(lab.sandboxDir(), 'store/layers')).length };
	};
	const commands = () => readdirSync(join(lab.sandboxDir(), 'commands')).length;
	await latencies(lab, 80); // more than sandboxd keeps in memory
	const before = await settle();
	const kib = residentKiB(pid);
	const atFirst = commands();
	const took = await latencies(lab, n);
	const after = await settle();
	t.diagnostic(`${n} commands: median ${median(took).toFixed(1)} ms`);
	t.diagnostic(`before ${JSON.stringify(before)}, after ${JSON.stringify(after)}`);

	await t.test('no process, mount, descriptor, session or layer', () => {
		assert.equal(after.zombies, 0);
		for (const [what, count] of Object.entries(before))
			assert.ok(after[what] <= count + (what === 'daemonFds' ? 4 : 1), `${what}: ${count}, then ${after[what]}; ${describeFds(pid)}`);
	});
	await t.test('and no memory', { skip: sanitized }, () => {
		assert.ok(residentKiB(pid) - kib < 4096, `${kib} KiB, then ${residentKiB(pid)} KiB`);
	});
	await t.test('but their transcripts, up to the limit', () => {
		assert.ok(commands() <= COMMANDS_KEPT_MAX + 1, `${commands()}`);
		assert.equal(commands() - atFirst, Math.min(n + 1, COMMANDS_KEPT_MAX - atFirst));
	});
	await t.test('the newest 512 are readable, the first of them too', async () => {
		const { commands: listed } = await lab.admin('command', 'list', lab.id);
		assert.equal(listed.length, 512);
		assert.equal((await lab.lines(listed[0])).status, 'ok');
	});
});

test('64 commands print; the 65th is as quick as ever', async (t) => {
	const lab = await Lab.make(t);
	const alone = median(await latencies(lab, 15));
	const running = await Promise.all(Array.from({ length: 64 }, (_, i) =>
		lab.start(`while :; do echo "row of ${i}"; read -t 0.2 x; done`)));
	for (const command of [running[0], running[63]]) await lab.shows(command, 'row of');
	const crowded = await latencies(lab, 15);
	t.diagnostic(`true: ${alone.toFixed(1)} ms alone, median ${median(crowded).toFixed(1)} ms, ` +
		`worst ${Math.max(...crowded).toFixed(1)} ms beside 64 printing commands`);
	assert.ok(median(crowded) < Math.max(10 * alone, 500));
	const ends = await Promise.all(running.map((command) => lab.finish(command, '\u0003')));
	for (const [i, end] of ends.entries()) {
		assert.equal(end.status, 'cancelled');
		const rows = (await lab.lines(running[i])).output.split('\n').filter(Boolean);
		assert.ok(rows.length && rows.every((row) => row === `row of ${i}`), `command ${i}`);
	}
});

test('the time from the exit of a command to the answer', async (t) => {
	const lab = await Lab.make(t);
	const took = [];
	for (let i = 0; i < 40; i++) {
		const command = await lab.start('read x; printf "%s" $EPOCHREALTIME');
		const answer = lab.stdin(command, '\n', { yield_time_ms: 50_000 });
		const { output, status } = await answer;
		assert.equal(status, 'ok');
		took.push(Date.now() - Number(output) * 1000);
	}
	t.diagnostic(`last instruction to answer: median ${median(took).toFixed(1)} ms of 40`);
	assert.ok(median(took) < 250, `${median(took)} ms`); // no wait and no poll is in it
});

test('B50: floods are bounded, and others are served', async (t) => {
	const lab = await Lab.make(t);
	const other = await lab.connect();
	const pid = await lab.daemonPid();
	await latencies(lab, 5);

	const flood = async (cmd, timeout_ms) => {
		const idle = residentKiB(pid);
		const begun = performance.now();
		let ended = false, peak = 0;
		const answers = [];
		const running = lab.exec(cmd, { timeout_ms })
			.then((state) => (state.status === 'running' ? lab.finish(state) : state))
			.finally(() => (ended = true));
		while (!ended) {
			const sent = performance.now();
			assert.equal((await lab.exec('echo small', {}, other)).output, 'small\n');
			answers.push(performance.now() - sent);
			peak = Math.max(peak, residentKiB(pid) - idle);
			await sleep(50);
		}
		const done = await running;
		const worst = Math.max(...answers);
		t.diagnostic(`${cmd}: ${done.total_lines} rows, ${peak} KiB over idle; beside it a command ` +
			`took median ${median(answers).toFixed(0)} ms, worst ${worst.toFixed(0)} ms`);
		assert.ok(peak < FLOOD_KIB, `${peak} KiB`);
		assert.ok(worst < SLACK * 1000);
		assert.ok(seconds(begun) < timeout_ms / 1000 + 2 + SLACK);
		return done;
	};

	await t.test('yes', async () => {
		const done = await flood('yes', LONG ? 60_000 : 3000);
		assert.equal(done.status, 'timed_out');
		// of a minute this is the second answer: it may go on among rows that are dropped already
		assert.match(done.output, LONG ? /^(y\ny\n|\[rows )/ : /^y\ny\n/);
		assert.match(done.output, /(^|\n)\[rows \d+\.\.\d+ omitted; read_command_lines start_offset=\d+\]\n/);
		assert.match(done.output, /\ny\n?$/);
		const took = [];
		for (let i = 1; i <= 20; i++) {
			const begun = performance.now();
			const at = Math.floor((done.total_lines * i) / 21);
			// of a minute the middle is dropped: those rows say so
			assert.match((await lab.lines(done, at, 3)).output, /^(y\n|\[row not kept.*\]\n){3}$/);
			took.push(performance.now() - begun);
		}
		t.diagnostic(`a window of ${done.total_lines} rows: median ${median(took).toFixed(1)} ms`);
		assert.ok(median(took) < 250);
	});
	await t.test('both streams at once', async () => {
		assert.equal((await flood('yes >&2 & yes', 2000)).status, 'timed_out');
	});
	await t.test('one line without an end', async () => {
		const done = await flood(`head -c ${LONG ? '3G' : '200M'} /dev/zero | tr '\\0' a`, LONG ? 300_000 : 20_000);
		assert.equal(done.total_lines, 1);
		assert.match(done.output, /^a+[^a].*a+$/s);
		assert.ok(done.output.length <= 64 << 10);
		const page = await lab.lines(done);
		assert.deepEqual([page.start_offset, page.end_offset], [0, 1]);
	});
	await t.test('random bytes', async () => {
		assert.equal((await flood('cat /dev/urandom', 2000)).status, 'timed_out');
	});
});

test('B50: any window of a long transcript is there at once', async (t) => {
	const lab = await Lab.make(t);
	const pid = await lab.daemonPid();
	await latencies(lab, 5);
	const idle = residentKiB(pid);
	const bytes = LONG ? 1 << 30 : 64 << 20;
	const width = 64;
	const n = bytes / width; // rows that name themselves
	let done = await lab.start(`awk 'BEGIN { for (i = 0; i < ${n}; i++) printf "%-63d\\n", i }'`);
	if (done.status === 'running') done = await lab.finish(done);
	assert.deepEqual([done.status, done.total_lines], ['ok', n]);
	const took = [];
	const check = async (start, limit) => {
		const begun = performance.now();
		const { output, end_offset } = await lab.lines(done, start, limit);
		took.push(performance.now() - begun);
		const rows = output.split('\n').slice(0, -1);
		assert.equal(end_offset - start, Math.min(limit, n - start));
		assert.ok(rows.every((row, i) => row === String(start + i).padEnd(width - 1)), `${start}`);
	};
	for (let i = 0; i < 200; i++) await check(Math.floor(Math.random() * n), 1 + Math.floor(Math.random() * 20));
	const small = median(took.splice(0));
	for (const start of [0, n - 1000, Math.floor(n / 2), n - 1]) await check(start, 1000);
	const grown = residentKiB(pid) - idle;
	t.diagnostic(`${bytes >> 20} MiB: a window of up to 20 rows in ${small.toFixed(2)} ms (median of 200), ` +
		`of 1000 in ${median(took).toFixed(2)} ms, ${grown} KiB more memory`);
	assert.ok(small < 5 || !LONG, `${small} ms`);
	assert.ok(sanitized || grown < 8192, `${grown} KiB`); // an allocator that keeps what is freed
});

test('B76, B77: what a command exhausts it exhausts for itself', async (t) => {
	const lab = await Lab.make(t);

	await t.test('limits on descriptors are sane and starting is quick', async () => {
		const { output } = await lab.exec('ulimit -Sn; n=$(ulimit -Hn); ((n <= 1048576)) && echo sane');
		assert.equal(output, '16384\nsane\n');
	});
	await t.test('a process that forks until its timeout is ended with all its children', async () => {
		const pid = await lab.daemonPid();
		const before = descendants(pid).length;
		const forking = lab.exec('for ((i = 0; i < 400; i++)); do sleep 100 & done; wait', { timeout_ms: 2500 });
		assert.equal((await lab.exec('echo meanwhile')).output, 'meanwhile\n');
		const done = await forking;
		assert.equal(done.status, 'timed_out');
		await until(() => descendants(pid).length <= before + 1, 'the end of all children');
		assert.equal((await lab.exec('echo after')).output, 'after\n');
	});
	await t.test('256 commands run in one session; one more is refused, by name of the limit', async () => {
		const inside = { workspace_session_id: await lab.session() };
		const commands = [];
		for (let i = 0; i < 256; i += 32)
			commands.push(...await Promise.all(Array.from({ length: 32 }, () => lab.start('read x', inside))));
		const error = await lab.refused('server_busy', 'exec_command', { cmd: 'true', ...inside });
		assert.match(error.message, /256 commands, its limit/);
		await lab.finish(commands[0], '\n');
		assert.equal((await lab.exec('echo room', inside)).output, 'room\n');
		await lab.admin('session', 'discard', lab.id, inside.workspace_session_id, '--force');
	});
});
