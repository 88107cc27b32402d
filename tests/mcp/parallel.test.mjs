// SPDX-License-Identifier: MIT
// Two official clients of different eras at work in one sandbox at the same time.
import assert from 'node:assert/strict';
import test from 'node:test';
import { call, connect, run, State } from './support.mjs';

const LEGACY = 'sdk 1.x, initialize';
const MODERN = 'client 2.x, 2026-07-28';
const numbered = (n) => Array.from({ length: n }, (_, i) => `line ${i + 1}\n`).join('');

/** Starts a command that changes something at once and then waits for a line of input. */
async function begin(client, sandbox_id, change) {
	return call(client, 'exec_command', {
		sandbox_id,
		cmd: `${change} && echo changed && read -r go`,
		yield_time_ms: 0,
	});
}

/** Waits until the command has made its change. */
async function changed(client, sandbox_id, command_session_id) {
	for (;;) {
		const { output } = await call(client, 'write_command_stdin', {
			sandbox_id,
			command_session_id,
			stdin: '',
			yield_time_ms: 100,
		});
		if (output.includes('changed')) return;
	}
}

async function finish(client, sandbox_id, command_session_id) {
	return call(client, 'write_command_stdin', {
		sandbox_id,
		command_session_id,
		stdin: 'go\n',
		yield_time_ms: 50_000,
	});
}

/** Both change the same base before either ends; gives their last results, in order of ending. */
async function sideBySide(t, changeA, changeB, files) {
	const state = await State.make(t);
	const sandbox_id = await state.sandbox('shared', files);
	const a = await connect(t, LEGACY, state.env);
	const b = await connect(t, MODERN, state.env);
	const first = await begin(a, sandbox_id, changeA);
	const second = await begin(b, sandbox_id, changeB);
	assert.deepEqual([first.status, second.status], ['running', 'running']);
	await changed(a, sandbox_id, first.command_session_id);
	await changed(b, sandbox_id, second.command_session_id);
	const results = [
		await finish(a, sandbox_id, first.command_session_id),
		await finish(b, sandbox_id, second.command_session_id),
	];
	for (const result of results) assert.equal(result.status, 'ok', JSON.stringify(result));
	return { state, sandbox_id, a, b, results };
}

test('disjoint lines of one file both land, each with its owner', async (t) => {
	const { sandbox_id, a, b, results } = await sideBySide(t,
		"sed -i 's/^line 3$/from A/' f.txt", "sed -i 's/^line 17$/from B/' f.txt",
		{ 'f.txt': numbered(20) });
	for (const result of results) assert.equal(result.publish.no_op, false);
	assert.equal(results[1].publish.merged, 1);

	const expected = numbered(20).replace('line 3\n', 'from A\n').replace('line 17', 'from B');
	for (const client of [a, b])
		assert.equal((await call(client, 'file_read', { sandbox_id, path: 'f.txt' })).content,
			expected);
	const owners = results.map((result) => `workspace_session:${result.workspace_session_id}`);
	assert.notEqual(owners[0], owners[1]);
	const { ranges } = await call(b, 'file_blame', { sandbox_id, path: 'f.txt' });
	assert.deepEqual(ranges, [
		{ start_line: 1, line_count: 2, owner: 'original' },
		{ start_line: 3, line_count: 1, owner: owners[0] },
		{ start_line: 4, line_count: 13, owner: 'original' },
		{ start_line: 17, line_count: 1, owner: owners[1] },
		{ start_line: 18, line_count: 3, owner: 'original' },
	]);
});

test('different files and one new directory both land', async (t) => {
	const { sandbox_id, a } = await sideBySide(t, 'mkdir -p out && echo a >out/a',
		'mkdir -p out && echo b >out/b', { 'f.txt': 'f\n' });
	assert.equal((await run(a, sandbox_id, 'cat out/*')).output, 'a\nb\n');
});

test('the same line: exactly one lands, the other is kept as a reject', async (t) => {
	const { state, sandbox_id, b, results } = await sideBySide(t,
		"sed -i 's/^line 3$/from A/' f.txt && echo a >only-a",
		"sed -i 's/^line 3$/from B/' f.txt && echo b >only-b", { 'f.txt': numbered(5) });
	assert.equal(results[0].publish.modified, 1);
	const rejected = results[1];
	assert.equal(rejected.publish_rejected, true);
	assert.equal(rejected.publish_reject_class, 'source_conflict');
	assert.ok(!rejected.publish);
	assert.deepEqual(rejected.conflicts.map((conflict) => conflict.path), ['f.txt']);

	// Nothing of the refused one shows, not even the file that nobody else touched.
	const { content } = await call(b, 'file_read', { sandbox_id, path: 'f.txt' });
	assert.equal(content, numbered(5).replace('line 3', 'from A'));
	assert.equal((await run(b, sandbox_id, 'ls only-*')).output, 'only-a\n');

	const { rejects } = await state.adminJson('reject', 'list', sandbox_id);
	assert.deepEqual(rejects.map((reject) => reject.reject_id), [rejected.reject_id]);
	const shown = await state.adminJson('reject', 'show', sandbox_id, rejected.reject_id);
	assert.equal(shown.reject_id, rejected.reject_id);
	assert.deepEqual(shown.conflicts.map((conflict) => conflict.path), ['f.txt']);
	assert.equal(shown.owner, `workspace_session:${rejected.workspace_session_id}`);
	assert.match(await state.admin('reject', 'diff', sandbox_id, rejected.reject_id), /from B/);
});

test('calls of one client run side by side and answer out of order', async (t) => {
	const state = await State.make(t);
	const sandbox_id = await state.sandbox('order', { f: 'f\n' });
	const client = await connect(t, MODERN, state.env);
	const order = [];
	const slow = call(client, 'exec_command', { sandbox_id, cmd: 'read -r x', yield_time_ms: 2000 });
	const quick = run(client, sandbox_id, 'echo quick');
	await Promise.all([slow.then(() => order.push('slow')), quick.then(() => order.push('quick'))]);
	assert.deepEqual(order, ['quick', 'slow']);
});
