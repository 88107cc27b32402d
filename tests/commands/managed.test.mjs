// SPDX-License-Identifier: MIT
// Managed sessions: private until published, pinned to their head, several commands at once, told
// what they would publish, and alive across a crash of sandboxd.
import assert from 'node:assert/strict';
import test from 'node:test';
import { descendants, Lab, processInfo, residentKiB, seconds } from './lab.mjs';
import { until } from '../support.mjs';

const inits = async (lab) => descendants(await lab.daemonPid()).map(processInfo)
	.filter((p) => p?.name === 'sbx-init').length;

async function sessions(lab) {
	return (await lab.admin('session', 'list', lab.id)).sessions;
}

test('a managed session keeps its work to itself until it is published', async (t) => {
	const lab = await Lab.make(t, { 'a.txt': 'one\ntwo\nthree\n' });
	const workspace_session_id = await lab.session();
	const inside = { workspace_session_id };

	await t.test('what it changes is seen in it and nowhere else', async () => {
		const done = await lab.exec('echo four >>a.txt; echo new >b.txt; echo kept >/tmp/t', inside);
		assert.deepEqual([done.status, done.publish], ['ok', undefined]);
		assert.equal((await lab.exec('tail -n 1 a.txt; cat b.txt /tmp/t', inside)).output, 'four\nnew\nkept\n');
		assert.equal((await lab.exec('tail -n 1 a.txt; ls -1')).output, 'three\na.txt\n');
	});
	await t.test('it is pinned to its head', async () => {
		await lab.exec('echo elsewhere >c.txt; sed -i s/one/ONE/ a.txt');
		assert.equal((await lab.exec('head -n 1 a.txt; ls -1', inside)).output, 'one\na.txt\nb.txt\n');
		const { version } = await lab.admin('session', 'show', lab.id, workspace_session_id);
		assert.equal(version, 1);
	});
	await t.test('file tools work in it', async () => {
		await lab.tool('file_write', { path: 'd.txt', content: 'by a tool\n', ...inside });
		assert.equal((await lab.exec('cat d.txt', inside)).output, 'by a tool\n');
		await lab.exec('echo by a command >e.txt', inside);
		const read = await lab.tool('file_read', { path: 'e.txt', ...inside });
		assert.equal(read.content, 'by a command\n');
		await lab.refused('not_found', 'file_read', { path: 'e.txt' });
	});
	await t.test('session diff tells what publishing would change', async () => {
		const diff = await lab.admin('session', 'diff', lab.id, workspace_session_id);
		assert.deepEqual([diff.added, diff.modified, diff.deleted], [3, 1, 0]);
		assert.deepEqual(diff.paths.map((p) => p.path).sort(), ['a.txt', 'b.txt', 'd.txt', 'e.txt']);
		assert.match(diff.files.find((f) => f.path === 'a.txt').diff, /^\+four$/m);
	});
	await t.test('publishing merges with what others did meanwhile', async () => {
		const { publish } = await lab.admin('session', 'publish', lab.id, workspace_session_id);
		assert.deepEqual([publish.added, publish.merged, publish.no_op], [3, 1, false]);
		assert.equal((await lab.exec('cat a.txt c.txt')).output, 'ONE\ntwo\nthree\nfour\nelsewhere\n');
		const { ranges } = await lab.tool('file_blame', { path: 'a.txt' });
		assert.equal(ranges.at(-1).owner, `workspace_session:${workspace_session_id}`);
	});
	await t.test('and ends it', async () => {
		assert.deepEqual(await sessions(lab), []);
		const error = await lab.refused('not_found', 'exec_command', { cmd: 'true', ...inside });
		assert.match(error.message, /it may have ended/);
	});
});

test('several commands run at once in one session', async (t) => {
	const lab = await Lab.make(t);
	const inside = { workspace_session_id: await lab.session() };

	await t.test('each with its own terminal and transcript', async () => {
		const commands = [];
		for (let i = 0; i < 8; i++)
			commands.push(await lab.start(`read x; echo "${i} $x"; tty`, inside));
		const ttys = new Set();
		for (const [i, command] of commands.entries()) {
			const [said, tty] = (await lab.finish(command, `word ${i}\n`)).output.split('\n');
			assert.equal(said, `${i} word ${i}`);
			ttys.add(tty);
		}
		assert.equal(ttys.size, 8);
	});
	await t.test('background children live on, and their output is kept', async () => {
		const command = await lab.exec(
			'(for i in 1 2 3; do sleep 0.2; echo tick $i; done; sleep 300) & echo up', inside);
		assert.deepEqual([command.status, command.output], ['ok', 'up\n']);
		await lab.shows(command, 'tick 3');
		assert.equal((await lab.lines(command)).output, 'up\ntick 1\ntick 2\ntick 3\n');
		assert.equal((await lab.exec('pgrep -xc sleep', inside)).output, '1\n');
	});
	await t.test('a server that was started in the background answers a later command', async () => {
		await lab.exec('python3 -m http.server 18080 & for i in $(seq 100); do ' +
			'(echo >/dev/tcp/127.0.0.1/18080) 2>/dev/null && break; sleep 0.1; done', inside);
		const { output } = await lab.exec('python3 -c "import urllib.request as u; ' +
			'print(u.urlopen(\'http://127.0.0.1:18080/\').status)"', inside);
		assert.equal(output, '200\n');
	});
	await t.test('a flood from the background does not hold up the answer', async () => {
		const begun = performance.now();
		const command = await lab.exec('yes & echo up', inside);
		assert.equal(command.status, 'ok');
		assert.ok(seconds(begun) < 8);
		await lab.exec('pkill -x yes', inside);
	});
});

test('a session without processes holds only descriptors', async (t) => {
	const lab = await Lab.make(t);
	const inside = { workspace_session_id: await lab.session() };
	// its own, and that of the session which stands ready
	const without = await until(async () => (await inits(lab)) === 2 && 2, 'both inits');
	await lab.exec('echo kept >/tmp/f; cat /proc/sys/kernel/random/boot_id >/dev/shm/g', inside);

	await t.test('its init ends some seconds after its last process', async () => {
		await until(async () => (await inits(lab)) < without, 'the end of its init');
		const [session] = await sessions(lab);
		assert.equal(session.state, 'idle');
	});
	await t.test('and the next command finds /tmp, a /proc of its own and no stranger', async () => {
		for (let i = 0; i < 2; i++) {
			const { output } = await lab.exec('cat /tmp/f; wc -l </dev/shm/g; ps -e --no-headers | wc -l;' +
				'grep -c ^proc /proc/mounts; cat /proc/1/comm', inside);
			assert.equal(output, 'kept\n1\n5\n1\nsbx-init\n'); // init, keeper, shell, ps, wc
			await until(async () => (await inits(lab)) < without, 'the end of its init');
		}
	});
	await t.test('a running child keeps it', async () => {
		await lab.exec('sleep 7 & :', inside);
		await new Promise((next) => setTimeout(next, 6000));
		assert.match((await lab.exec('pgrep -xc sleep', inside)).output, /^[01]\n$/);
		assert.equal((await sessions(lab)).length, 1);
	});
	await t.test('commands that come while it goes to rest are started all the same', async () => {
		const end = performance.now() + 7000;
		for (let pause = 4800; performance.now() < end; pause += 40) {
			await new Promise((next) => setTimeout(next, Math.min(pause, 5100)));
			assert.equal((await lab.exec('echo here', inside)).output, 'here\n');
		}
	});
	await t.test('an idle session costs sandboxd and the spawner little memory', async () => {
		const pid = await lab.daemonPid();
		const spawner = descendants(pid).find((p) => processInfo(p)?.name === 'sbx-spawner');
		const before = residentKiB(pid) + residentKiB(spawner);
		for (let i = 0; i < 16; i++) await lab.session();
		const each = (residentKiB(pid) + residentKiB(spawner) - before) / 16;
		t.diagnostic(`an idle managed session: ${each.toFixed(0)} KiB`);
		assert.ok(each < 1024);
	});
});

test('ending a session with running commands', async (t) => {
	const lab = await Lab.make(t);
	for (const verb of ['publish', 'discard']) {
		const id = await lab.session();
		const inside = { workspace_session_id: id };
		const a = await lab.start("trap 'echo cleaned >done.txt; exit 0' TERM; echo up; while :; do sleep 0.1; done", inside);
		const b = await lab.start('sleep 300', inside);
		await lab.shows(a, 'up');

		await t.test(`${verb} is refused and lists them`, async () => {
			const message = await lab.adminFails('session', verb, lab.id, id);
			assert.match(message, /still runs 2 command/);
			for (const { command_session_id } of [a, b]) assert.match(message, new RegExp(command_session_id));
			assert.equal((await lab.exec('echo usable', inside)).output, 'usable\n');
		});
		await t.test(`${verb} --force ends them first, with a chance to clean up`, async () => {
			const waiting = lab.finish(a);
			const result = await lab.admin('session', verb, lab.id, id, '--force');
			if (verb === 'publish') assert.equal(result.publish.added, 1);
			else assert.deepEqual(result, { workspace_session_id: id, discarded: true });
			assert.equal((await waiting).status, 'cancelled');
			assert.equal((await lab.lines(b)).status, 'cancelled');
			assert.deepEqual(await sessions(lab), []);
			const { output } = await lab.exec('cat done.txt; rm -f done.txt');
			assert.match(output, verb === 'publish' ? /^cleaned\n$/ : /No such file/);
		});
	}
	await t.test('what ignores SIGTERM is killed after the grace', async () => {
		const id = await lab.session();
		const command = await lab.start("trap '' TERM; echo up; while :; do sleep 0.1; done", { workspace_session_id: id });
		await lab.shows(command, 'up');
		const begun = performance.now();
		await lab.admin('session', 'discard', lab.id, id, '--force');
		assert.ok(seconds(begun) >= 1.9 && seconds(begun) < 10);
	});
});

test('a refused publication leaves the session alive and usable', async (t) => {
	const lab = await Lab.make(t, { 'a.txt': 'one\n' });
	const id = await lab.session();
	const inside = { workspace_session_id: id };
	await lab.exec('echo mine >a.txt; echo more >b.txt', inside);
	await lab.exec('echo theirs >a.txt');

	await t.test('it lists the conflict', async () => {
		const refused = await lab.admin('session', 'publish', lab.id, id).catch((error) =>
			JSON.parse(error.stdout || '{}'));
		assert.equal(refused.publish_rejected, true);
		assert.equal(refused.publish_reject_class, 'source_conflict');
		assert.deepEqual(refused.conflicts.map((c) => c.path), ['a.txt']);
		assert.equal(refused.reject_id, null);
		assert.match(refused.next_step, /the session goes on/);
		assert.deepEqual((await lab.admin('reject', 'list', lab.id)).rejects, []);
	});
	await t.test('nothing was published, everything is still in the session', async () => {
		assert.equal((await lab.exec('cat a.txt; ls -1')).output, 'theirs\na.txt\n');
		assert.equal((await lab.exec('cat a.txt b.txt', inside)).output, 'mine\nmore\n');
		assert.equal((await sessions(lab))[0].workspace_session_id, id);
	});
	await t.test('also after a crash of sandboxd', async () => {
		await lab.crash();
		lab.server = await lab.connect();
		assert.equal((await lab.exec('cat a.txt b.txt', inside)).output, 'mine\nmore\n');
	});
	await t.test('when the conflict is taken back, it publishes', async () => {
		await lab.exec('echo one >a.txt', inside);
		const { publish } = await lab.admin('session', 'publish', lab.id, id);
		assert.equal(publish.added, 1);
		assert.equal((await lab.exec('cat a.txt b.txt')).output, 'theirs\nmore\n');
	});
});

test('a managed session comes back after a crash of sandboxd', async (t) => {
	const lab = await Lab.make(t, { 'a.txt': 'one\n' });
	const id = await lab.session();
	const inside = { workspace_session_id: id };
	await lab.exec('echo work >w.txt; echo two >>a.txt; mkdir d; ln -s a.txt l; echo gone >/tmp/t', inside);
	const running = await lab.start('echo up; sleep 300', inside);
	await lab.shows(running, 'up');
	const [before] = await sessions(lab);
	await lab.exec('echo later >later.txt');
	await lab.crash();

	await t.test('with its files, its head and its age', async () => {
		const [session] = await sessions(lab);
		assert.equal(session.workspace_session_id, id);
		assert.equal(session.version, before.version);
		assert.ok(Math.abs(session.created_ns - before.created_ns) < 1e9);
		assert.deepEqual(session.command_session_ids, []);
		lab.server = await lab.connect();
		const { output } = await lab.exec('cat w.txt a.txt; readlink l; ls -1', inside);
		assert.equal(output, 'work\none\ntwo\na.txt\na.txt\nd\nl\nw.txt\n');
	});
	await t.test('without its processes and its /tmp', async () => {
		assert.equal((await lab.exec('ls /tmp; pgrep -xc sleep', inside)).output, '0\n');
		const ended = await lab.lines(running);
		assert.deepEqual([ended.status, ended.exit_code, ended.output], ['error', 137, 'up\n']);
	});
	await t.test('and publishes as ever', async () => {
		const { publish } = await lab.admin('session', 'publish', lab.id, id);
		assert.equal(publish.no_op, false);
		assert.equal((await lab.exec('cat a.txt w.txt later.txt')).output, 'one\ntwo\nwork\nlater\n');
	});
});
