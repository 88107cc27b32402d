// SPDX-License-Identifier: MIT
// Commands that join a running automatic session, ids, retention, and sbx-admin's views of commands.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Lab } from './lab.mjs';

test('a second command joins a running automatic session', async (t) => {
	const lab = await Lab.make(t, { 'a.txt': 'one\n' });

	await t.test('they share files and processes, and the session ends after the last', async () => {
		const first = await lab.start('echo from-first >f; echo up; sleep 300 & read x; cat g');
		await lab.shows(first, 'up');
		const inside = { workspace_session_id: first.workspace_session_id };
		const second = await lab.exec('cat f; pgrep -xc sleep; echo from-second >g', inside);
		assert.equal(second.output, 'from-first\n1\n');
		assert.deepEqual([second.status, second.publish], ['ok', null]);
		assert.match(second.next_step, /published when the last/);
		assert.equal(second.workspace_session_id, first.workspace_session_id);
		assert.equal((await lab.exec('ls')).output, 'a.txt\n');
		const done = await lab.finish(first, '\n');
		assert.match(done.output, /from-second/);
		assert.equal(done.publish.added, 2);
		assert.deepEqual((await lab.lines(second)).publish, done.publish);
		await lab.refused('not_found', 'exec_command', { cmd: 'true', ...inside });
	});
	await t.test('the first may end first: its children live until the last ends', async () => {
		const first = await lab.start('sleep 300 & echo up; read x; echo first done');
		const inside = { workspace_session_id: first.workspace_session_id };
		const second = await lab.start('read x; pgrep -xc sleep; echo s >s', inside);
		const early = await lab.finish(first, '\n');
		assert.deepEqual([early.status, early.publish], ['ok', null]);
		const done = await lab.finish(second, '\n');
		assert.deepEqual([done.output, done.publish.added], ['1\n', 1]);
		assert.deepEqual((await lab.lines(first)).publish, done.publish);
	});
	await t.test('a timeout of one does not touch the other', async () => {
		const first = await lab.start('read x; echo lives');
		const inside = { workspace_session_id: first.workspace_session_id };
		const late = await lab.exec('sleep 300', { ...inside, timeout_ms: 200 });
		assert.equal(late.status, 'timed_out');
		assert.equal((await lab.finish(first, '\n')).output, 'lives\n');
	});
	await t.test('a rejected publication is told to both', async () => {
		const first = await lab.start('echo mine >a.txt; echo up; read x');
		await lab.shows(first, 'up');
		const second = await lab.exec('true', { workspace_session_id: first.workspace_session_id });
		await lab.tool('file_write', { path: 'a.txt', content: 'theirs\n' });
		const done = await lab.finish(first, '\n');
		assert.deepEqual([done.status, done.publish_rejected], ['ok', true]);
		const told = await lab.lines(second);
		assert.deepEqual([told.publish_rejected, told.reject_id], [true, done.reject_id]);
	});
	await t.test('one of another sandbox cannot be joined', async () => {
		const first = await lab.start('read x');
		const other = await lab.state.sandbox('other');
		const result = await lab.server.call('exec_command', { sandbox_id: other, cmd: 'true',
			workspace_session_id: first.workspace_session_id });
		assert.equal(result.structuredContent.error.kind, 'not_found');
		await lab.finish(first, '\n');
	});
});

test('ids', async (t) => {
	const lab = await Lab.make(t);
	const ids = [];
	for (let i = 0; i < 40; i++) {
		const done = await lab.exec('true');
		ids.push(done.command_session_id, done.workspace_session_id);
	}
	await t.test('are never used twice', () => assert.equal(new Set(ids).size, ids.length));
	await t.test('cannot be guessed: 80 bits and more, nothing in common', () => {
		for (const id of ids) assert.match(id, /^(cmd|ws)_[0-9a-z]{16,}$/);
		const column = (k) => new Set(ids.filter((id) => id.startsWith('cmd')).map((id) => id[4 + k]));
		for (let k = 0; k < 16; k++) assert.ok(column(k).size > 8, `position ${k}`);
	});
});

test('sbx-admin shows commands', async (t) => {
	const lab = await Lab.make(t);
	const done = await lab.exec("printf 'a\\nb\\n'; exit 4");
	const running = await lab.start('echo begun; read x; echo over');
	await lab.shows(running, 'begun');

	await t.test('command list', async () => {
		const { commands } = await lab.admin('command', 'list', lab.id);
		assert.deepEqual(commands.map((c) => [c.command_session_id, c.status, c.exit_code, c.total_lines]),
			[[done.command_session_id, 'error', 4, 2], [running.command_session_id, 'running', null, 1]]);
		assert.equal(commands[0].command, "printf 'a\\nb\\n'; exit 4");
	});
	await t.test('command show', async () => {
		const shown = await lab.admin('command', 'show', lab.id, done.command_session_id);
		assert.deepEqual([shown.status, shown.exit_code, shown.transcript_bytes], ['error', 4, 4]);
		assert.equal(shown.publish.no_op, true);
	});
	await t.test('command tail', async () => {
		assert.equal(await lab.state.admin('command', 'tail', lab.id, done.command_session_id), 'a\nb\n');
	});
	await t.test('command tail -f follows to the end', async () => {
		const following = lab.state.admin('command', 'tail', lab.id, running.command_session_id, '-f');
		await new Promise((next) => setTimeout(next, 200));
		await lab.finish(running, '\n');
		assert.equal(await following, 'begun\nover\n');
	});
	await t.test('an unknown one is an error', async () => {
		for (const verb of ['show', 'tail', 'kill'])
			assert.match(await lab.adminFails('command', verb, lab.id, 'cmd_nothing'), /no command/);
	});
});
