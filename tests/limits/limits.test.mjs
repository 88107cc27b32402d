// SPDX-License-Identifier: MIT
// Programs that take all they can get: each meets its session's limit, the result says which, and
// everybody else goes on as if nothing was.
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { promisify } from 'node:util';
import { connect, run, serverPath, State } from '../support.mjs';

const CLIENT = 'sdk 1.x, initialize';
const adminPath = join(dirname(serverPath), 'sbx-admin');
const MIB = 1 << 20;
const TIMEOUT_MS = 60_000; // of a command that should meet its limit long before

async function sandbox(t, id, ...options) {
	const state = await State.make(t);
	const workspace = join(state.dir, 'workspace');
	await mkdir(workspace);
	await state.admin('create', '--workspace', workspace, '--id', id, ...options);
	state.ids.push(id);
	return { state, client: await connect(t, CLIENT, state.env) };
}

/** Why this host cannot run a sandbox with limits, or undefined. */
async function cannotLimit(client, sandbox_id) {
	const result = await client.callTool({
		name: 'exec_command',
		arguments: { sandbox_id, cmd: 'true' },
	});
	const message = result.structuredContent.error?.message;
	if (!message) return undefined;
	assert.match(message, /cannot limit/);
	return message;
}

const python = (...lines) => `python3 - <<'END'\n${lines.join('\n')}\nEND`;

/** [what, command, exit codes that fit, output, note] */
const gluttons = [
	['8 GiB of memory', python('a = bytearray(8 << 30)'), [137], /^/, /^memory limit hit:.* 128\.0 MiB/],
	['an endless line', 'tail /dev/zero', [137], /^/, /^memory limit hit/],
	['a fork bomb', python('import os, time',
		'first = os.getpid()',
		'while True:',
		'    try:',
		'        os.fork()',
		'    except OSError as e:',
		'        if os.getpid() == first:',
		'            print(e, flush=True)',
		'            os._exit(2)',
		'        time.sleep(1)'), [2], /temporarily unavailable/,
		/^process limit hit:.* 100 processes/],
	['a thread bomb', python('import os, threading, time',
		'try:',
		'    while True:',
		'        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()',
		'except RuntimeError as e:',
		'    print(e, flush=True)',
		'    os._exit(3)'), [3], /start new thread/, /^process limit hit/],
	['all descriptors', python('import os, sys',
		'try:',
		'    while True:',
		"        os.open('/dev/null', os.O_RDONLY)",
		'except OSError as e:',
		'    sys.exit(e.strerror)'), [1], /Too many open files/, null],
	...['/dev/shm', '/tmp', '/run'].map((dir) => [`all of ${dir}`,
		`head -c 1G /dev/zero >${dir}/full`, [1], /No space left on device/, null]),
];

test('a session that takes all it can get', async (t) => {
	const { client } = await sandbox(t, 'greedy',
		'--memory-max', String(128 * MIB), '--pids-max', '100');
	const why = await cannotLimit(client, 'greedy');
	if (why) return t.skip(why);
	for (const [what, cmd, codes, output, note] of gluttons)
		await t.test(what, async () => {
			const glutton = run(client, 'greedy', cmd, { timeout_ms: TIMEOUT_MS });
			const neighbour = run(client, 'greedy', 'echo fine');
			await client.ping();
			const others = await neighbour;
			assert.deepEqual([others.status, others.output, others.notes], ['ok', 'fine\n', undefined]);
			const result = await glutton;
			assert.ok(codes.includes(result.exit_code), JSON.stringify(result).slice(0, 2000));
			assert.match(result.output, output);
			if (note) assert.match(result.notes.join('\n'), note);
			else assert.equal(result.notes, undefined);

			const next = await run(client, 'greedy', 'true');
			assert.deepEqual([next.status, next.notes], ['ok', undefined], 'what the last one did is not held against it');
		});
	return undefined;
});

test('a managed session lives on after its limits were met', async (t) => {
	const { state, client } = await sandbox(t, 'stays',
		'--memory-max', String(128 * MIB), '--pids-max', '100');
	const why = await cannotLimit(client, 'stays');
	if (why) return t.skip(why);
	const { workspace_session_id } = await state.adminJson('session', 'create', 'stays');
	const inside = { workspace_session_id, timeout_ms: TIMEOUT_MS };

	await run(client, 'stays', 'echo kept >f', inside);
	const hog = await run(client, 'stays', 'tail /dev/zero', inside);
	assert.match(hog.notes.join('\n'), /^memory limit hit/);
	const after = await run(client, 'stays', 'cat f', inside);
	assert.deepEqual([after.output, after.notes], ['kept\n', undefined]);
	return undefined;
});

test('a session waits for its share of the CPU, and session show tells', async (t) => {
	const { state, client } = await sandbox(t, 'slow', '--cpu-max', '0.05');
	const why = await cannotLimit(client, 'slow');
	if (why) return t.skip(why);
	const { workspace_session_id } = await state.adminJson('session', 'create', 'slow');
	const inside = { workspace_session_id, timeout_ms: 2000 };

	const result = await run(client, 'slow', 'while :; do :; done', inside);
	assert.deepEqual([result.status, result.notes], ['timed_out', undefined]);
	const shown = await state.adminJson('session', 'show', 'slow', workspace_session_id);
	assert.ok(shown.cpu_throttled_seconds > 0.1, JSON.stringify(shown));
	return undefined;
});

/** The values of a limit in the groups of a sandbox, whichever version has it. */
function inForce(sandbox_id, ...names) {
	const tests = names.flatMap((name) => ['-o', '-path', `*/${sandbox_id}@*/s*/${name}`]).slice(1);
	const found = spawnSync('find', ['/sys/fs/cgroup', '(', ...tests, ')', '-exec', 'cat', '{}', '+']);
	return found.stdout.toString().trim().split(/\s+/).filter(Boolean);
}

test('memory and processes are limited also where nothing was asked for', async (t) => {
	const { client } = await sandbox(t, 'default');
	assert.equal((await run(client, 'default', 'true')).status, 'ok');
	const pids = inForce('default', 'pids.max');
	if (!pids.length) return t.skip('this host has no controller for processes');
	assert.deepEqual(new Set(pids), new Set(['4096']));
	const memory = inForce('default', 'memory.max', 'memory.limit_in_bytes');
	assert.ok(memory.every((bytes) => Number(bytes) < totalmem()), memory.join());
	return undefined;
});

const noUnshare = spawnSync('unshare', ['-m', 'true']).status !== 0 && 'missing on this host: unshare';

/** Runs sbx-admin, and the sandboxd that it starts, where no control group is mounted. */
function adminWithoutGroups(state, ...args) {
	const script = 'umount -R -l /sys/fs/cgroup && exec "$@"';
	return promisify(execFile)('unshare', ['-m', 'sh', '-c', script, 'sh', adminPath, ...args], {
		env: state.env,
	});
}

test('a limit that was asked for and cannot be had', { skip: noUnshare }, async (t) => {
	const { state, client } = await sandbox(t, 'asks', '--memory-max', String(128 * MIB));
	await assert.rejects(adminWithoutGroups(state, 'session', 'create', 'asks'), (error) => {
		assert.match(error.stderr, /created with --memory-max, but this host cannot limit memory/);
		assert.match(error.stderr, /create the sandbox without --memory-max/);
		return true;
	});
	assert.ok(client);
});

test('a default that cannot be had is only logged', { skip: noUnshare }, async (t) => {
	const { state, client } = await sandbox(t, 'lives');
	await adminWithoutGroups(state, 'session', 'create', 'lives');
	assert.equal((await run(client, 'lives', 'echo on')).output, 'on\n');
	const log = await promisify(execFile)('cat', [join(state.dir, 'state/lives/sandboxd.log')]);
	assert.match(log.stdout, /sessions run without a limit of processes: no cgroup controller/);
});

test('nothing of a destroyed sandbox is left among the control groups', async (t) => {
	const id = `goes-${process.pid}`;
	const { state, client } = await sandbox(t, id);
	const groups = () => spawnSync('find', ['/sys/fs/cgroup', '-type', 'd', '-name', `${id}@*`])
		.stdout.toString();
	await run(client, id, 'true');
	if (!groups()) return t.skip('this host has no control groups');
	await state.admin('destroy', id, '--force');
	state.ids.pop();
	assert.equal(groups(), '');
	return undefined;
});
