// SPDX-License-Identifier: MIT
// What write_command_stdin promises: exact bytes, no silent cut, nothing that blocks (B37).
import assert from 'node:assert/strict';
import test from 'node:test';
import { Lab, seconds } from './lab.mjs';

test('stdin is exact', async (t) => {
	const lab = await Lab.make(t);

	await t.test('all bytes arrive, U+0000 included', async () => {
		const text = 'a\u0000b\tc\u00e9\u4e16\u{1f600}\\ "q" \'s\' $x `y` \n';
		const command = await lab.start('stty -icanon -isig; echo up; head -c 32 | od -An -v -tx1 | tr -d " \\n"');
		await lab.shows(command, 'up');
		assert.equal(Buffer.byteLength(text), 32);
		const done = await lab.finish(command, text);
		assert.match(done.output, new RegExp(`${Buffer.from(text).toString('hex')}$`));
	});

	await t.test('an empty write is a wait', async () => {
		const command = await lab.start('read x; echo "got $x"');
		const waiting = await lab.stdin(command, '', { yield_time_ms: 50 });
		assert.equal(waiting.status, 'running');
		assert.equal('stdin_bytes_written' in waiting, false);
		assert.equal((await lab.finish(command, 'it\n')).output, 'got it\n');
	});

	await t.test('polls do not disturb: 100 rows come once each, and status 3', async () => {
		const command = await lab.start('for i in $(seq 100); do echo $i; sleep 0.02; done; exit 3');
		let state = command, { output } = command;
		while (state.status === 'running') {
			const polled = await lab.result('write_command_stdin',
				{ command_session_id: command.command_session_id, stdin: '', yield_time_ms: 50 });
			// it may end between two polls: then its rows are read
			state = polled.isError
				? await lab.lines(command, output.split('\n').length - 1)
				: polled.structuredContent;
			output += state.output;
		}
		assert.deepEqual([state.status, state.exit_code], ['error', 3]);
		assert.equal(output, Array.from({ length: 100 }, (_, i) => `${i + 1}\n`).join(''));
	});

	await t.test('many lines arrive whole', async () => {
		const text = Array.from({ length: 20_000 }, (_, i) => `line ${i}\n`).join('');
		const command = await lab.start('md5sum; echo over');
		const done = await lab.finish(command, `${text}\u0004`);
		const { output } = await lab.exec(`seq 0 19999 | sed 's/^/line /' | md5sum`);
		assert.equal(done.output, `${output}over\n`);
	});
});

test('a line that the terminal would cut is refused', async (t) => {
	const lab = await Lab.make(t);
	const cut = /longer than 4095 bytes/;

	await t.test('the longest line passes whole', async () => {
		const command = await lab.start('head -n 1 | wc -c');
		assert.equal((await lab.finish(command, `${'x'.repeat(4095)}\n`)).output, '4096\n');
	});

	await t.test('a longer one does not, and nothing of it is written', async () => {
		const command = await lab.start('head -n 1');
		const { command_session_id } = command;
		const error = await lab.refused('invalid_request', 'write_command_stdin',
			{ command_session_id, stdin: `first\n${'x'.repeat(4096)}\n` });
		assert.match(error.message, cut);
		assert.equal((await lab.finish(command, 'second\n')).output, 'second\n');
	});

	await t.test('nor in pieces', async () => {
		const command = await lab.start('head -n 1 | wc -c');
		const { command_session_id } = command;
		await lab.stdin(command, 'x'.repeat(3000));
		const error = await lab.refused('invalid_request', 'write_command_stdin',
			{ command_session_id, stdin: 'y'.repeat(1096) });
		assert.match(error.message, cut);
		assert.match(error.message, /3000 of them/);
		assert.equal((await lab.finish(command, `${'y'.repeat(1095)}\n`)).output, '4096\n');
	});

	await t.test('what ends or empties a line starts the count again', async () => {
		for (const end of ['\n', '\r', '\u0004', '\u0015']) {
			const command = await lab.start('cat >/dev/null');
			await lab.stdin(command, 'x'.repeat(4000) + end + 'y'.repeat(4000) + end);
			const done = await lab.finish(command, '\n\u0004\u0004');
			assert.equal(done.status, 'ok', JSON.stringify(end));
		}
	});

	await t.test('a quoted end does not', async () => {
		const command = await lab.start('cat >/dev/null');
		const { command_session_id } = command;
		await lab.stdin(command, `${'x'.repeat(4000)}\u0016\n`);
		await lab.refused('invalid_request', 'write_command_stdin',
			{ command_session_id, stdin: 'y'.repeat(200) });
		assert.equal((await lab.finish(command, '\u0003')).status, 'cancelled');
	});

	await t.test('a program that reads bytes takes a line of any length', async () => {
		const command = await lab.start('stty -icanon; echo up; head -c 300000 | wc -c');
		await lab.shows(command, 'up');
		assert.match((await lab.finish(command, 'z'.repeat(300_000))).output, /300000\n$/);
	});
});

test('a consumer that does not read blocks nobody', async (t) => {
	const lab = await Lab.make(t);
	const text = 'unread\n'.repeat(70_000);

	await t.test('what was not taken in time is reported in bytes', async () => {
		const command = await lab.start('exec sleep 300');
		const begun = performance.now();
		const writing = lab.stdin(command, text, { yield_time_ms: 700 });
		assert.equal((await lab.exec('echo meanwhile')).output, 'meanwhile\n');
		const state = await writing;
		assert.ok(seconds(begun) < 20);
		assert.equal(state.status, 'running');
		assert.ok(state.stdin_bytes_written >= 4096, `${state.stdin_bytes_written}`);
		assert.equal(state.stdin_bytes_written + state.stdin_bytes_refused, text.length);
		const again = await lab.stdin(command, 'more\n', { yield_time_ms: 50 });
		assert.equal(again.stdin_bytes_written + (again.stdin_bytes_refused ?? 0), 5);
		const done = await lab.finish(command, '\u0003');
		assert.deepEqual([done.status, done.exit_code], ['cancelled', 130]);
	});

	await t.test('Ctrl-C reaches it behind unread bytes, also in the same write', async () => {
		const command = await lab.start('exec sleep 300');
		const done = await lab.finish(command, `${text}\u0003`);
		assert.deepEqual([done.status, done.exit_code], ['cancelled', 130]);
		assert.equal(done.stdin_bytes_refused, undefined);
	});

	await t.test('after an interrupt the unread bytes are gone and new ones arrive', async () => {
		const command = await lab.start(
			"trap 'echo INT' INT; echo up; sleep 300; head -n 1; cat | wc -c");
		await lab.shows(command, 'up');
		await lab.stdin(command, text, { yield_time_ms: 100 });
		const done = await lab.finish(command, '\u0003fresh\nrest\n\u0004');
		assert.equal(done.output.replace(/up\n/, ''), 'INT\nfresh\n5\n');
	});

	await t.test('while bytes wait, another write is told so; a signal is not held up', async () => {
		const command = await lab.start('exec sleep 300');
		const first = lab.stdin(command, text, { yield_time_ms: 20_000 });
		await lab.exec('true');
		const { command_session_id } = command;
		const error = await lab.refused('server_busy', 'write_command_stdin',
			{ command_session_id, stdin: 'second\n' });
		assert.match(error.message, /nothing was written/);
		assert.equal((await lab.finish(command, '\u0003')).status, 'cancelled');
		assert.equal((await first).status, 'cancelled');
	});

	await t.test('one write has a limit, which the refusal names', async () => {
		const command = await lab.start('exec sleep 300');
		const { command_session_id } = command;
		const error = await lab.refused('invalid_request', 'write_command_stdin',
			{ command_session_id, stdin: 'x\n'.repeat(600_000) });
		assert.match(error.message, /limit of 1048576/);
		await lab.finish(command, '\u0003');
	});
});

test('B37: a finished command says so', async (t) => {
	const lab = await Lab.make(t);
	const command = await lab.exec('echo hi; exit 7');
	const { command_session_id } = command;

	for (const stdin of ['x\n', '\u0003', ''])
		await t.test(`to ${JSON.stringify(stdin)}`, async () => {
			for (let i = 0; i < 3; i++) {
				const error = await lab.refused('operation_conflict', 'write_command_stdin',
					{ command_session_id, stdin });
				assert.match(error.message, /status error, exit code 7/);
				assert.match(error.message, /read_command_lines/);
			}
		});
	await t.test('and its transcript stays', async () => {
		const rows = await lab.lines(command);
		assert.deepEqual([rows.output, rows.status, rows.exit_code], ['hi\n', 'error', 7]);
	});
	await t.test('which an id that never was does not', async () => {
		for (const id of ['cmd_00000000000000000000', 'cmd_', '../x', '']) {
			const error = await lab.refused('not_found', 'write_command_stdin',
				{ command_session_id: id, stdin: '' });
			assert.match(error.message, /no command/);
			await lab.refused('not_found', 'read_command_lines', { command_session_id: id });
		}
	});
	await t.test('and one of another sandbox is not to be had', async () => {
		const other = await lab.state.sandbox('other');
		const result = await lab.server.call('read_command_lines',
			{ sandbox_id: other, command_session_id });
		assert.equal(result.structuredContent.error.kind, 'not_found');
	});
});
