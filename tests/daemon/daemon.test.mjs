// SPDX-License-Identifier: MIT
// sandboxd under what clients, workers and sessions can do to it: every request is answered once,
// and nothing that one of them does bars the others.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'node:test';
import { promisify } from 'node:util';
import { serverPath, State, until, within } from '../support.mjs';
import { cpuMs, descendants, residentBytes, Wire } from './wire.mjs';

const exec = (wire, cmd, more = {}) =>
	wire.result('exec_command', { cmd, yield_time_ms: 50_000, ...more });

/** A sandbox, its daemon's pid, and a client. */
async function start(t, files, name = 'daemon') {
	const state = await State.make(t);
	const id = await state.sandbox(name, files);
	const { daemon_pid: pid } = await state.adminJson('inspect', id);
	const wire = await Wire.connect(t, state, id);
	return { state, id, pid, wire };
}

/** The init of the session in which a program runs. */
async function initOf(daemonPid, program) {
	const all = await descendants(daemonPid);
	let found = all.find(({ name }) => name === program);
	while (found && found.name !== 'sbx-init') found = all.find(({ pid }) => pid === found.parent);
	return found?.pid;
}

async function managed(wire) {
	return (await wire.result('session_create')).workspace_session_id;
}

test('as many commands as a session may run, asked for at once, all run', async (t) => {
	const { wire } = await start(t);
	const workspace_session_id = await managed(wire);
	const asked = Array.from({ length: 240 }, (_, i) =>
		exec(wire, `echo number ${i}`, { workspace_session_id }),
	);
	const results = await Promise.all(asked);
	for (const [i, result] of results.entries())
		assert.deepEqual([result.status, result.output], ['ok', `number ${i}\n`]);
});

test('a signal is not lost when the socket of an init is full', async (t) => {
	const { wire, pid } = await start(t);
	const inside = { workspace_session_id: await managed(wire) };
	const victim = await exec(wire, 'exec sleep 1000', { ...inside, yield_time_ms: 0 });
	const init = await until(() => initOf(pid, 'sleep'), 'the command');
	process.kill(init, 'SIGSTOP');
	const others = Array.from({ length: 250 }, () => exec(wire, 'true', inside));
	await wire.result('inspect'); // all of them have been taken up
	const killed = wire.result('command_kill', { command_session_id: victim.command_session_id });
	await sleep(2500); // longer than the grace: neither signal finds room
	process.kill(init, 'SIGCONT');
	assert.equal((await killed).status, 'cancelled');
	for (const { status } of await Promise.all(others)) assert.equal(status, 'ok');
});

test('a kill leaves the rows to those who read them', async (t) => {
	const { wire } = await start(t);
	const stubborn = "trap 'echo told' TERM; echo up; while :; do read -rt 0.1 x; done";
	const { command_session_id, output } = await exec(wire, stubborn, { yield_time_ms: 0 });
	const shown = async () => (await wire.result('read_command_lines', { command_session_id })).output;
	await until(async () => /up/.test(await shown()), 'its start');
	const killed = wire.result('command_kill', { command_session_id });
	await until(async () => /told/.test(await shown()), 'the first signal');
	const done = await wire.result('write_command_stdin', { command_session_id, stdin: '', yield_time_ms: 50_000 });
	assert.deepEqual([done.status, output + done.output], ['cancelled', 'up\ntold\n']);
	assert.deepEqual([(await killed).status, (await killed).output], ['cancelled', undefined]);
});

test('sandboxd ends in order with everything in flight, and its control groups with it', async (t) => {
	const name = `ends${process.pid}`;
	const { state, id, pid } = await start(t, { 'a.txt': 'one\n' }, name);
	process.kill(pid, 'SIGTERM');
	await until(() => !existsSync(`/proc/${pid}`), 'the end of the first sandboxd');
	const child = spawn(join(dirname(serverPath), 'sandboxd'), [id], { env: state.env, stdio: 'ignore' });
	const ended = new Promise((done) => child.on('exit', (code, signal) => done({ code, signal })));
	t.after(() => child.kill('SIGKILL'));
	await until(() => existsSync(join(state.env.SBX_STATE_DIR, id, 'sandboxd.sock')), 'its socket');
	const wire = await Wire.connect(t, state, id);
	const later = (op, args) => wire.ask(op, args).catch(() => {});
	const inside = { workspace_session_id: await managed(wire) };
	await exec(wire, "trap '' TERM; echo w >w; sleep 1000", { ...inside, yield_time_ms: 0 });
	const busy = await exec(wire, 'for i in $(seq 3000); do echo $i >f$i; done; read -r go', { yield_time_ms: 0 });
	later('write_command_stdin', { command_session_id: busy.command_session_id, stdin: 'go\n' });
	later('session_publish', { ...inside, force: true });
	for (let i = 0; i < 20; i++) {
		later('file_write', { path: `t${i}`, content: 'x'.repeat(100_000) });
		later('file_read', { path: 'a.txt', ...(i % 2 ? inside : {}) });
		later('exec_command', { cmd: `echo ${i} >e${i}` });
	}
	later('verify');
	later('command_tail', { command_session_id: busy.command_session_id, follow: true });
	await wire.result('inspect');
	child.kill('SIGTERM');
	assert.deepEqual(await within(ended, 'its end'), { code: 0, signal: null });
	const { stdout } = await promisify(execFile)('find',
		['/sys/fs/cgroup', '-type', 'd', '-name', `${name}@*`]);
	assert.equal(stdout, '');
});

test('a long request holds up nobody', async (t) => {
	const { wire, state, id, pid } = await start(t);
	const other = await Wire.connect(t, state, id);
	const content = 'a line of text with "quotes" and a \\ and \u00e9\n'.repeat(1_300_000); // 64 MiB as JSON
	await exec(other, 'true');
	const beside = async (answer) => {
		let worst = 0, over = false;
		const done = answer.finally(() => (over = true));
		while (!over) {
			const begun = performance.now();
			await other.result('inspect');
			worst = Math.max(worst, performance.now() - begun);
		}
		return { ...(await done), worst };
	};
	await t.test('file_write', async (t) => {
		const { result, worst } = await beside(wire.ask('file_write', { path: 'big', content }));
		t.diagnostic(`64 MiB: others waited up to ${worst.toFixed(0)} ms`);
		assert.equal(result.bytes_written, Buffer.byteLength(content));
		const { output } = await exec(other, 'md5sum <big');
		assert.equal(output, `${createHash('md5').update(content).digest('hex')}  -\n`);
	});
	await t.test('which sandboxd only passes on', async (t) => {
		const before = await cpuMs(pid);
		await wire.result('file_write', { path: 'big', content: `${content}.` });
		const used = (await cpuMs(pid)) - before;
		t.diagnostic(`64 MiB: ${used} ms of CPU in the event loop`);
		assert.ok(used < 200, `${used} ms`);
	});
	await t.test('in a session, with other arguments beside', async () => {
		const inside = { workspace_session_id: await managed(other) };
		const text = `${'x'.repeat(300_000)}\n`;
		await wire.result('file_write', { path: 'in', content: `${text}end\n`, ...inside });
		const edits = [{ old_string: 'end', new_string: 'END' }, { old_string: text, new_string: `${'y'.repeat(400_000)}\n` }];
		assert.equal((await wire.result('file_edit', { path: 'in', edits, ...inside })).replacements, 2);
		assert.equal((await exec(other, 'head -c 3 in; tail -n 1 in; wc -c <in', inside)).output, 'yyyEND\n400005\n');
	});
	await t.test('a command and its stdin', async () => {
		const n = 600_000;
		const cmd = `stty -icanon; echo up; head -c ${n} | md5sum # ${'z'.repeat(1 << 20)}`;
		const { command_session_id } = await exec(wire, cmd, { yield_time_ms: 0 });
		await until(async () => /up/.test((await other.result('read_command_lines', { command_session_id })).output), 'stty');
		const stdin = 'stdin\n'.repeat(n / 6);
		const { output } = await wire.result('write_command_stdin', { command_session_id, stdin, yield_time_ms: 50_000 });
		assert.match(output, new RegExp(createHash('md5').update(stdin).digest('hex')));
	});
	await t.test('what is wrong with it is told', async () => {
		const long = 'x'.repeat(300_000);
		const wrong = [
			[{ path: long, content: 'x' }, /argument "path" has 300000 bytes, more than the limit of 65536/],
			[{ path: 'p', content: long, more: 1 }, /more/],
			[{ content: { aside: [0, 300_000] }, path: long }, /"content": expected a string, got an object/],
		];
		for (const [args, message] of wrong) {
			const { error } = await wire.ask('file_write', args);
			assert.equal(error.kind, 'invalid_request');
			assert.match(error.message, message);
		}
		assert.match((await wire.ask(long)).error.message, /there is no operation/);
		assert.equal((await exec(wire, 'echo served')).output, 'served\n');
	});
});

test('a dead init of the session kept ready costs nobody an error', async (t) => {
	const { wire, pid } = await start(t);
	await exec(wire, 'true');
	for (let i = 0; i < 5; i++) {
		const init = await until(
			async () => (await descendants(pid)).find(({ name }) => name === 'sbx-init'),
			'the next session',
		);
		process.kill(init.pid, 'SIGKILL');
		await until(
			async () => !(await descendants(pid)).some((each) => each.pid === init.pid),
			'its end',
		);
		const { status, exit_code } = await exec(wire, 'exit 3');
		assert.deepEqual([status, exit_code], ['error', 3]);
	}
});

test('a command that joined an automatic session is told what was published', async (t) => {
	const { wire } = await start(t);
	const first = await exec(wire, 'read -r go; echo first >first', { yield_time_ms: 0 });
	const { workspace_session_id, command_session_id } = first;
	const joined = await exec(wire, 'read -r go; echo second >second', {
		workspace_session_id,
		yield_time_ms: 0,
	});
	// more than sandboxd keeps in memory, all younger than the two
	for (let i = 0; i < 70; i++) await exec(wire, 'true');
	const go = (id) =>
		wire.result('write_command_stdin', {
			command_session_id: id,
			stdin: 'go\n',
			yield_time_ms: 50_000,
		});
	const early = await go(joined.command_session_id);
	assert.deepEqual([early.status, early.publish], ['ok', null]);
	const last = await go(command_session_id);
	assert.equal(last.publish.added, 2);
	const { publish } = await wire.result('read_command_lines', {
		command_session_id: joined.command_session_id,
	});
	assert.deepEqual(publish, last.publish);
});

test('a session can be published right after a file tool has written in it', async (t) => {
	const { wire } = await start(t);
	for (let i = 0; i < 20; i++) {
		const workspace_session_id = await managed(wire);
		const content = `${i}\n`;
		await wire.result('file_write', { path: `file-${i}`, content, workspace_session_id });
		const { publish } = await wire.result('session_publish', { workspace_session_id });
		assert.equal(publish.added, 1);
	}
});

test('stdin that nobody waits for any more bars no other', async (t) => {
	const { wire, state, id } = await start(t);
	const { command_session_id } = await exec(wire, 'read -r go; sleep 1000', { yield_time_ms: 0 });
	const gone = await Wire.connect(t, state, id);
	const stdin = 'line\n'.repeat(50_000); // far more than a terminal holds
	gone.ask('write_command_stdin', { command_session_id, stdin, yield_time_ms: 50_000 }).catch(() => {});
	await until(async () => {
		const { error } = await wire.ask('write_command_stdin', {
			command_session_id,
			stdin: 'x\n',
			yield_time_ms: 0,
		});
		return error?.kind === 'server_busy';
	}, 'the first one has filled the terminal');
	gone.close();
	const { result } = await until(async () => {
		const answer = await wire.ask('write_command_stdin', {
			command_session_id,
			stdin: 'x\n',
			yield_time_ms: 0,
		});
		return answer.result && answer;
	}, 'another may write', 5_000);
	assert.equal(result.status, 'running');
	await wire.result('command_kill', { command_session_id });
});

test('without descriptors sandboxd waits and serves those it has', async (t) => {
	const { wire, state, id, pid } = await start(t);
	await exec(wire, 'true');
	await promisify(execFile)('prlimit', ['--pid', String(pid), '--nofile=64:64']);
	const path = join(state.env.SBX_STATE_DIR, id, 'sandboxd.sock');
	const crowd = Array.from({ length: 100 }, () => createConnection(path).on('error', () => {}));
	const leave = () => crowd.forEach((socket) => socket.destroy());
	const full = /Too many open files/;
	const log = join(state.env.SBX_STATE_DIR, id, 'sandboxd.log');
	await until(async () => full.test(await readFile(log, 'latin1')), 'the crowd is in').catch(
		(error) => {
			leave(); // or nobody could destroy the sandbox
			throw error;
		},
	);
	assert.ok((await wire.result('inspect')).client_count > 10);
	const before = await cpuMs(pid);
	await sleep(1000);
	const used = (await cpuMs(pid)) - before;
	leave();
	assert.ok(used < 300, `${used} ms of CPU in a second without anything to do`);
	const late = await Wire.connect(t, state, id);
	assert.equal((await exec(late, 'echo served')).output, 'served\n');
});

test('a client that does not read costs no memory, and then gets all', async (t) => {
	const { wire, state, id, pid } = await start(t);
	const size = 384 << 20;
	await exec(wire, `head -c ${size} /dev/zero >big`);
	const slow = await Wire.connect(t, state, id);
	slow.socket.pause();
	const answer = slow.ask('cat', { path: 'big' });
	let last = -1;
	await until(async () => {
		const now = await residentBytes(pid);
		const still = now === last;
		last = now;
		await sleep(200);
		return still;
	}, 'nothing more is read for it');
	assert.ok(last < 256 << 20, `${last >> 20} MiB are kept for one client`);
	assert.equal((await exec(wire, 'echo served')).output, 'served\n');
	slow.socket.resume();
	const { chunks } = await answer;
	assert.equal(chunks.reduce((sum, { length }) => sum + length, 0), size);
});

test('a worker that dies fails its own job only', async (t) => {
	const { wire, pid } = await start(t, { 'a/file': 'text\n' });
	await wire.result('file_read', { path: 'a/file' });
	const workers = (await descendants(pid)).filter(({ name }) => name === 'sbx-worker');
	assert.ok(workers.length > 0);
	for (const worker of workers) process.kill(worker.pid, 'SIGKILL');
	const answers = await Promise.all(
		Array.from({ length: 8 }, () => wire.ask('file_read', { path: 'a/file' })),
	);
	for (const { error } of answers) if (error) assert.equal(error.kind, 'internal_error');
	assert.equal((await wire.result('file_read', { path: 'a/file' })).content, 'text\n');
});

test('clients that go away in the middle of everything leave a daemon that works', async (t) => {
	const { wire, state, id } = await start(t, { shared: 'base\n' });
	for (let round = 0; round < 4; round++) {
		const some = await Promise.all(Array.from({ length: 4 }, () => Wire.connect(t, state, id)));
		for (const [i, client] of some.entries()) {
			const ignore = () => {};
			client.ask('exec_command', { cmd: `echo ${i} >shared; echo ${i}` }).catch(ignore);
			client.ask('file_write', { path: `f${i}`, content: `${round}\n` }).catch(ignore);
			client.ask('file_read', { path: 'shared' }).catch(ignore);
			client.ask('session_create').then(
				({ result }) => result && client.ask('session_discard', result).catch(ignore),
				ignore,
			);
		}
		await sleep(round * 5);
		for (const client of some) client.close();
	}
	const idle = await until(async () => {
		const now = await wire.result('inspect');
		return now.running_command_count === 0 && now.publications_pending === 0 && now;
	}, 'all of it ends');
	assert.equal(idle.client_count, 1);
	assert.equal((await exec(wire, 'echo served')).output, 'served\n');
	for (const { workspace_session_id } of (await wire.result('session_list')).sessions)
		await wire.ask('session_discard', { workspace_session_id });
	await within(wire.result('verify'), 'verify');
});

test('squash and gc wait for what is under way; none of it is refused or lost', async (t) => {
	const { wire } = await start(t);
	const asked = [];
	for (let i = 0; i < 60; i++) {
		asked.push(wire.result('file_write', { path: `f${i}`, content: `${i}\n` }));
		if (i % 6 === 0) asked.push(wire.result('squash'), wire.result('gc'));
	}
	await Promise.all(asked);
	await Promise.all([wire.result('gc'), wire.result('squash'), wire.result('gc')]);
	const { status, output } = await exec(wire, 'cat f* | sort -n');
	assert.equal(status, 'ok');
	assert.equal(output, Array.from({ length: 60 }, (_, i) => `${i}\n`).join(''));
	const { damages } = await wire.result('verify');
	assert.deepEqual(damages, []);
});

test('a client that leaves while its gc waits bars nobody', async (t) => {
	const { wire, state, id } = await start(t);
	const leaving = await Wire.connect(t, state, id);
	const big = exec(wire, 'seq 1000 | split -l 1 - n');
	const writes = Array.from({ length: 20 }, (_, i) =>
		wire.result('file_write', { path: `w${i}`, content: 'x\n' }),
	);
	for (let i = 0; i < 8; i++) void leaving.ask('gc');
	leaving.close();
	await Promise.all([big, ...writes]);
	await wire.result('gc');
	const { publish } = await exec(wire, 'echo done >done');
	assert.equal(publish.added, 1);
});

test('a sandboxd that is stopped is named, and keeps nobody waiting for ever', async (t) => {
	const { state, id, pid } = await start(t);
	process.kill(pid, 'SIGSTOP');
	try {
		const named = new RegExp(`process ${pid}\\) runs but does not answer`);
		await Promise.all([
			assert.rejects(state.admin('inspect', id), named),
			assert.rejects(state.admin('destroy', id, '--force'), named),
		]);
	} finally {
		process.kill(pid, 'SIGCONT');
	}
	assert.equal((await state.adminJson('inspect', id)).daemon_pid, pid);
});
