// SPDX-License-Identifier: MIT
// How commands end: exit status, timeouts and kills that take the whole tree, what becomes of
// background children, and orphans that are reaped (B34, B35, B44, B45).
import assert from 'node:assert/strict';
import test from 'node:test';
import { descendants, Lab, median, processInfo, seconds } from './lab.mjs';

const GRACE = 2; // seconds between SIGTERM and SIGKILL (COMMAND_GRACE_NS)
const SLACK = 8; // of a busy machine

test('the status tells how it ended', async (t) => {
	const lab = await Lab.make(t);
	const ends = [
		['true', 'ok', 0], ['exit 3', 'error', 3], ['exit 255', 'error', 255],
		['kill -TERM $$; sleep 9', 'error', 143], ['kill -KILL $$', 'error', 137],
		['kill -SEGV $$', 'error', 139], ['nosuchprogram', 'error', 127], ['/etc/passwd', 'error', 126],
		['if', 'error', 2], ['exec false', 'error', 1],
	];
	for (const [cmd, status, code] of ends)
		await t.test(cmd, async () => {
			const done = await lab.exec(cmd);
			assert.deepEqual([done.status, done.exit_code], [status, code]);
		});
});

test('B34: background children neither hold the answer nor outlive an automatic session', async (t) => {
	const lab = await Lab.make(t);
	const cases = {
		'a child on the terminal': ['sleep 300 & echo started', 'started\n'],
		'a server with its own output': ['nohup python3 -m http.server 0 >/dev/null 2>&1 & echo ok', 'ok\n'],
		'a process substitution': ['exec > >(cat) 2>&1; echo hi; sleep 0.3', 'hi\n'],
		'a child in a session of its own': ["setsid sh -c 'sleep 1; echo late >late.txt' & echo bye", 'bye\n'],
		'one that ignores signals': ["(trap '' TERM HUP INT; sleep 300) & echo up", 'up\n'],
	};
	for (const [promise, [cmd, output]] of Object.entries(cases))
		await t.test(promise, async () => {
			const begun = performance.now();
			const done = await lab.exec(cmd);
			assert.deepEqual([done.status, done.output], ['ok', output]);
			assert.ok(seconds(begun) < SLACK);
		});
	await t.test('nothing of them comes later', async () => {
		assert.equal((await lab.exec('pgrep -c sleep; sleep 1.5; ls')).output, '0\n');
		const family = descendants(await lab.daemonPid()).map((pid) => processInfo(pid)?.name);
		assert.deepEqual(family.filter((name) => /sleep|python|http/.test(name ?? '')), []);
	});
});

test('B35: a timeout takes the whole tree, after a chance to clean up', async (t) => {
	const lab = await Lab.make(t);
	const timed = async (cmd, timeout_ms, more) => {
		const begun = performance.now();
		const done = await lab.exec(cmd, { timeout_ms, ...more });
		assert.deepEqual([done.status, done.exit_code], ['timed_out', 124]);
		return { ...done, took: seconds(begun) - timeout_ms / 1000 };
	};
	const stubborn = "trap '' TERM; (trap '' TERM; setsid sh -c 'trap \"\" TERM; " +
		"while :; do date >>beat; sleep .1; done') & echo so far; sleep 600";

	await t.test('what obeys ends at once, not after the grace', async () => {
		const took = [];
		for (let i = 0; i < 5; i++) took.push((await timed('sleep 100 & sleep 600', 200)).took);
		assert.ok(median(took) < GRACE / 2, `${took}`);
	});
	await t.test('what does not obey ends after it, with its output so far', async () => {
		const done = await timed(stubborn, 600);
		assert.equal(done.output, 'so far\n');
		assert.ok(done.took >= GRACE - 0.1 && done.took < GRACE + SLACK, `${done.took}`);
		const counts = await lab.exec('pgrep -c sleep; wc -l <beat; sleep 0.5; wc -l <beat');
		const [n, a, b] = counts.output.split('\n');
		assert.ok(Number(a) > 0);
		assert.deepEqual([b, n], [a, '0']);
		await lab.exec('rm beat');
	});
	await t.test('in a session that lives on, too', async () => {
		const workspace_session_id = await lab.session();
		const inside = { workspace_session_id };
		const bystander = await lab.start('read x; echo "lives $x"', inside);
		await timed(stubborn, 600, inside);
		await timed('sleep 100 & sleep 600', 200, inside);
		const { output } = await lab.exec('pgrep -c sleep', inside);
		assert.equal(output, '0\n');
		assert.equal((await lab.finish(bystander, 'on\n')).output, 'lives on\n');
		await lab.admin('session', 'discard', lab.id, workspace_session_id);
	});
	await t.test('and there what has become a daemon before, which others of the session have not', async () => {
		const workspace_session_id = await lab.session();
		const inside = { workspace_session_id };
		const daemon = (n) => `(setsid sh -c "trap '' TERM HUP; (sleep ${n} & ) & exec sleep ${n}" >/dev/null 2>&1 &)`;
		await lab.exec(`${daemon(1111)}; sleep 0.2`, inside);
		const bystander = await lab.start(`${daemon(2222)}; read x`, inside);
		await timed(`${daemon(3333)}; (sleep 3333 &); sleep 600`, 700, inside);
		const { output } = await lab.exec('pgrep -ax sleep | cut -d" " -f2- | sort | uniq -c', inside);
		assert.deepEqual(output.trim().split(/\s*\n\s*/), ['2 sleep 1111', '2 sleep 2222']);
		await lab.finish(bystander, '\n');
		await lab.admin('session', 'discard', lab.id, workspace_session_id);
	});
	await t.test('what kills its own keeper is still seen to end, and still timed out', async () => {
		const workspace_session_id = await lab.session();
		const inside = { workspace_session_id };
		const killed = await lab.exec('kill -9 $PPID; sleep 0.2; echo on; exit 5', inside);
		assert.deepEqual([killed.status, killed.exit_code, killed.output], ['error', 5, 'on\n']);
		const all = await lab.exec('kill -9 -1; exit 6', inside);
		assert.deepEqual([all.status, [6, 137].includes(all.exit_code)], ['error', true]);
		await timed('kill -9 $PPID; sleep 600', 300, inside);
		assert.equal((await lab.exec('pgrep -c sleep', inside)).output, '0\n');
		await lab.admin('session', 'discard', lab.id, workspace_session_id);
	});
	await t.test('a lock file is removed by its owner', async () => {
		const done = await timed("trap 'rm -f lock; exit 1' TERM; touch lock kept; sleep 60 & wait", 2500);
		assert.deepEqual([done.publish.added, done.publish.no_op], [1, false]);
		assert.equal((await lab.exec('ls')).output, 'kept\n');
	});
	await t.test('the shell obeyed, a child needs the grace', async () => {
		await timed("(trap 'sleep 0.7; touch cleaned; exit' TERM; sleep 60 & wait) & wait", 2500);
		assert.match((await lab.exec('ls')).output, /cleaned/);
	});
	await t.test('50 nested shells', async () => {
		const nested = 'f() { if (($1)); then bash -c "$(declare -f f); f $(($1 - 1))"; else sleep 600; fi; }; f 50';
		await timed(nested, 3000);
		assert.equal((await lab.exec('pgrep -c sleep')).output, '0\n');
	});
	await t.test('a wait that is longer than the timeout does not prolong it', async () => {
		assert.ok((await timed('sleep 30', 300, { yield_time_ms: 50_000 })).took < SLACK);
	});
	await t.test('a shorter one sees it running, then timed out', async () => {
		const command = await lab.start('sleep 30', { timeout_ms: 700 });
		assert.equal(command.status, 'running');
		assert.equal((await lab.finish(command)).status, 'timed_out');
	});
});

test('sbx-admin command kill ends the whole tree', async (t) => {
	const lab = await Lab.make(t);
	const command = await lab.start('(setsid sleep 300 &) ; echo up; sleep 300');
	await lab.shows(command, 'up');
	const waiting = lab.finish(command);
	const killed = await lab.admin('command', 'kill', lab.id, command.command_session_id);
	assert.equal(killed.status, 'cancelled');
	assert.equal((await waiting).status, 'cancelled');
	assert.match(await lab.adminFails('command', 'kill', lab.id, command.command_session_id),
		/has finished already \(status cancelled, exit code 143\)/);
});

test('B44: orphans are reaped, in the session and on the host', async (t) => {
	const lab = await Lab.make(t);
	const { output } = await lab.exec(
		'for i in $(seq 200); do (sleep 0.05 &); done; sleep 2; ps -eo stat= | grep -c ^Z; cat /proc/1/comm');
	assert.equal(output, '0\nsbx-init\n');
	const zombies = descendants(await lab.daemonPid()).map(processInfo)
		.filter((p) => p?.state === 'Z');
	assert.deepEqual(zombies, []);
});

test('B45: extreme times are taken as they are meant or refused with the range', async (t) => {
	const lab = await Lab.make(t);
	const values = [2147483647, 2147483648, 4294967296, 9007199254740993, 1e18, null];
	for (const value of values) {
		await t.test(`timeout_ms ${value}`, async () => {
			const done = await lab.exec('sleep .1; echo done', { timeout_ms: value });
			assert.deepEqual([done.status, done.output], ['ok', 'done\n']);
		});
		await t.test(`yield_time_ms ${value}`, async () => {
			const begun = performance.now();
			const done = await lab.exec('sleep .1; echo done', { yield_time_ms: value });
			assert.deepEqual([done.status, done.output], ['ok', 'done\n']);
			assert.ok(seconds(begun) < SLACK);
		});
	}
	for (const [name, value] of [['timeout_ms', 0], ['timeout_ms', -1], ['timeout_ms', 0.5],
		['yield_time_ms', -1], ['yield_time_ms', 0.5], ['timeout_ms', '5'], ['yield_time_ms', true]])
		await t.test(`${name} ${JSON.stringify(value)} is refused`, async () => {
			const error = await lab.refused('invalid_request', 'exec_command', { cmd: 'true', [name]: value });
			assert.match(error.message, new RegExp(name));
		});
	await t.test('yield_time_ms 0 returns at once', async () => {
		const command = await lab.start('sleep 300');
		assert.ok(command.wall_time_seconds < SLACK);
		assert.deepEqual([command.status, command.exit_code], ['running', null]);
		await lab.finish(command, '\u0003');
	});
});
