// SPDX-License-Identifier: MIT
// All seven tools, driven by each official client in each era against a real sandbox. The clients
// check every result against its outputSchema.
import assert from 'node:assert/strict';
import test from 'node:test';
import { call, clients, connect, failure, run, State } from './support.mjs';

for (const name of Object.keys(clients)) {
	test(`${name}: all seven tools`, async (t) => {
		const state = await State.make(t);
		const sandbox_id = await state.sandbox('tools', {
			'README.md': '# Example\n\nProject overview\n',
			'src/main.txt': 'one\ntwo\nthree\n',
		});
		const client = await connect(t, name, state.env);

		await t.test('exec_command runs to its end and publishes', async () => {
			const done = await run(client, sandbox_id, 'cat README.md; echo four >>src/main.txt');
			assert.equal(done.status, 'ok');
			assert.equal(done.exit_code, 0);
			assert.equal(done.output, '# Example\n\nProject overview\n');
			assert.equal(done.publish.modified, 1);
			assert.equal(done.publish.no_op, false);
		});

		await t.test('exec_command reports how a command ended', async () => {
			const bad = await run(client, sandbox_id, 'exit 3');
			assert.deepEqual([bad.status, bad.exit_code], ['error', 3]);
			const late = await run(client, sandbox_id, 'sleep 60', { timeout_ms: 200 });
			assert.deepEqual([late.status, late.exit_code], ['timed_out', 124]);
		});

		await t.test('write_command_stdin feeds and waits', async () => {
			const asked = await call(client, 'exec_command', {
				sandbox_id,
				cmd: 'stty -echo; read -r x; echo "got $x"',
				yield_time_ms: 0,
			});
			assert.equal(asked.status, 'running');
			assert.equal(asked.exit_code, null);
			const { command_session_id } = asked;
			const fed = await call(client, 'write_command_stdin', {
				sandbox_id,
				command_session_id,
				stdin: 'it\n',
				yield_time_ms: 30_000,
			});
			assert.equal(fed.status, 'ok');
			assert.match(fed.output, /got it\n$/);
			const again = await failure(client, 'write_command_stdin', {
				sandbox_id,
				command_session_id,
				stdin: 'more\n',
			});
			assert.equal(again.kind, 'operation_conflict');
		});

		await t.test('read_command_lines pages', async () => {
			const { command_session_id } = await run(client, sandbox_id, 'seq 0 499');
			const page = await call(client, 'read_command_lines', {
				sandbox_id,
				command_session_id,
				start_offset: 100,
				limit: 3,
			});
			assert.equal(page.output, '100\n101\n102\n');
			assert.deepEqual([page.start_offset, page.end_offset, page.total_lines],
				[100, 103, 500]);
			const unknown = await failure(client, 'read_command_lines', {
				sandbox_id,
				command_session_id: 'cmd_nothing',
			});
			assert.equal(unknown.kind, 'not_found');
		});

		await t.test('file_read reads a window', async () => {
			const window = await call(client, 'file_read', {
				sandbox_id,
				path: 'src/main.txt',
				offset: 2,
				limit: 2,
			});
			assert.equal(window.content, 'two\nthree\n');
			assert.deepEqual([window.start_line, window.num_lines, window.total_lines],
				[2, 2, 4]);
			const missing = await failure(client, 'file_read', { sandbox_id, path: 'none' });
			assert.equal(missing.kind, 'not_found');
			assert.equal(missing.details.path, 'none');
		});

		await t.test('file_write creates and updates', async () => {
			const path = 'deep/er/notes.txt';
			const made = await call(client, 'file_write', { sandbox_id, path, content: 'a\n' });
			assert.deepEqual(made, { type: 'create', path, bytes_written: 2 });
			const changed = await call(client, 'file_write', { sandbox_id, path, content: 'bb\n' });
			assert.deepEqual(changed, { type: 'update', path, bytes_written: 3 });
			assert.equal((await run(client, sandbox_id, `cat ${path}`)).output, 'bb\n');
		});

		await t.test('file_edit replaces literal text', async () => {
			const path = 'src/main.txt';
			const edits = [{ old_string: 'two', new_string: '2' }];
			const edited = await call(client, 'file_edit', { sandbox_id, path, edits });
			assert.deepEqual([edited.type, edited.edits_applied, edited.replacements],
				['edit', 1, 1]);
			const refused = await failure(client, 'file_edit', {
				sandbox_id,
				path,
				edits: [{ old_string: 'threee', new_string: '3' }],
			});
			assert.equal(refused.kind, 'invalid_request');
			assert.match(refused.message, /\b3\b.*three\b/); // the closest line and its number
		});

		await t.test('file_blame tells the owners', async () => {
			const { ranges } = await call(client, 'file_blame', {
				sandbox_id,
				path: 'src/main.txt',
			});
			const lines = ranges.flatMap(({ line_count, owner }) => Array(line_count).fill(owner));
			assert.equal(lines.length, 4);
			assert.deepEqual([lines[0], lines[2]], ['original', 'original']);
			assert.match(lines[1], /^operation:/);
			assert.match(lines[3], /^workspace_session:/);
		});
	});
}
