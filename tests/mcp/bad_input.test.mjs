// SPDX-License-Identifier: MIT
// Input that is wrong, foreign, too long or cut off, against a real sandbox: each gets its answer
// and the server lives.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test from 'node:test';
import { RawServer, State, until, within } from './support.mjs';

const NOBODY = 65534;

async function start(t, files = { f: 'f\n' }) {
	const state = await State.make(t);
	const sandbox_id = await state.sandbox('input', files);
	const server = new RawServer(t, { env: state.env });
	await server.initialize();
	return { state, sandbox_id, server };
}

const errorOf = (result) => {
	assert.equal(result.isError, true, JSON.stringify(result));
	return result.structuredContent.error;
};

test('an unknown sandbox and one that is not mine answer alike', async (t) => {
	const { state, sandbox_id, server } = await start(t);
	const stranger = new RawServer(t, { env: state.env, uid: NOBODY });
	await stranger.initialize();
	const foreign = errorOf(await stranger.call('file_read', { sandbox_id, path: 'f' }));
	const unknown = errorOf(await server.call('file_read', { sandbox_id: 'input2', path: 'f' }));
	assert.equal(unknown.kind, 'not_found');
	assert.deepEqual(JSON.parse(JSON.stringify(unknown).replaceAll('input2', sandbox_id)), foreign);
	for (const id of ['', '../input', 'input/../input', '.', 'INPUT', 'x'.repeat(1000), 'a\u0000b'])
		assert.match(errorOf(await server.call('file_read', { sandbox_id: id, path: 'f' })).kind,
			/^(not_found|invalid_request)$/);
	assert.ok(!(await server.call('file_read', { sandbox_id, path: 'f' })).isError);
});

test('paths stay inside and links are not followed', async (t) => {
	const { sandbox_id, server } = await start(t);
	const made = await server.call('exec_command', {
		sandbox_id,
		cmd: 'ln -s /etc/passwd link && ln -s /etc dir && mkfifo fifo && mkdir real',
		yield_time_ms: 30_000,
	});
	assert.equal(made.structuredContent.exit_code, 0);
	const refused = ['../etc/passwd', 'a/../../x', '..', '/etc/passwd', 'link', 'fifo', 'real', 'dir/passwd'];
	for (const path of refused) {
		const { kind, message } = errorOf(await server.call('file_read', { sandbox_id, path }));
		assert.equal(kind, 'invalid_request', `${path}: ${message}`);
	}
	for (const path of refused) {
		const { kind } = errorOf(
			await server.call('file_write', { sandbox_id, path, content: 'x' }));
		assert.equal(kind, 'invalid_request', path);
	}
	assert.match(errorOf(await server.call('file_read', { sandbox_id, path: 'nul\u0000x' })).kind,
		/invalid_request/);
	const inside = await server.call('file_read', { sandbox_id, path: '/workspace/./f' });
	assert.equal(inside.structuredContent.content, 'f\n');
});

test('numbers may be written as 1000.0, null means absent, nothing else is guessed', async (t) => {
	const { sandbox_id, server } = await start(t);
	const exec = (more) => server.call('exec_command', { sandbox_id, cmd: 'true', ...more });
	server.send(`{"jsonrpc":"2.0","id":"float","method":"tools/call","params":{"name":
		"exec_command","arguments":{"sandbox_id":"${sandbox_id}","cmd":"true",
		"yield_time_ms":5e3,"timeout_ms":9000.0}}}`.replaceAll('\n', ' ') + '\n');
	const { result } = await server.answer('float');
	assert.equal(result.structuredContent.status, 'ok', JSON.stringify(result));
	const absent = await exec({ timeout_ms: null, workspace_session_id: null });
	assert.equal(absent.structuredContent.status, 'ok');
	for (const cmd of ['', '  \t\n'])
		assert.equal(errorOf(await exec({ cmd })).kind, 'invalid_request');
	assert.equal(errorOf(await exec({ timeout_ms: 0 })).kind, 'invalid_request');
});

test('a 64 MiB line with contents is written whole or refused, and the server lives', async (t) => {
	const { sandbox_id, server } = await start(t);
	const head = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"file_write",` +
		`"arguments":{"sandbox_id":"${sandbox_id}","path":"big","content":"`;
	const tail = '"}}}';
	const size = (64 << 20) - head.length - tail.length;
	server.send(Buffer.concat([Buffer.from(head), Buffer.alloc(size, 'x'), Buffer.from(`${tail}\n`)]));
	const { result } = await server.answer(1);
	if (result.isError) assert.notEqual(result.structuredContent.error.kind, 'internal_error');
	else assert.equal(result.structuredContent.bytes_written, size);
	const { structuredContent } = await server.call('exec_command', {
		sandbox_id,
		cmd: 'stat -c %s big 2>/dev/null || echo none',
		yield_time_ms: 30_000,
	});
	assert.equal(structuredContent.output, result.isError ? 'none\n' : `${size}\n`);
});

test('a request without an id is not carried out', async (t) => {
	const { sandbox_id, server } = await start(t);
	server.send({
		jsonrpc: '2.0',
		method: 'tools/call',
		params: { name: 'file_write', arguments: { sandbox_id, path: 'made', content: 'x' } },
	});
	const { kind } = errorOf(await server.call('file_read', { sandbox_id, path: 'made' }));
	assert.equal(kind, 'not_found');
	assert.deepEqual(server.lines, []);
});

test('stdin that ends in the middle: what was asked is answered, then the end', async (t) => {
	const { sandbox_id, server } = await start(t);
	const request = (id, cmd) => ({
		jsonrpc: '2.0',
		id,
		method: 'tools/call',
		params: { name: 'exec_command', arguments: { sandbox_id, cmd, yield_time_ms: 30_000 } },
	});
	server.send(request(1, 'sleep 1; echo slow >slow'));
	server.send(request(2, 'echo quick >quick'));
	server.send('{"jsonrpc":"2.0","id":3,"method":"tools/ca');
	assert.deepEqual(await server.end(), { code: 0, signal: null });
	for (const id of [1, 2])
		assert.equal((await server.answer(id)).result.structuredContent.publish.no_op, false);
	const cut = JSON.parse(await server.line());
	assert.deepEqual([cut.id, cut.error.code], [null, -32700]);
});

test('a client that goes away does not stop a command from publishing', async (t) => {
	const { state, sandbox_id, server } = await start(t);
	server.send({
		jsonrpc: '2.0',
		id: 1,
		method: 'tools/call',
		params: {
			name: 'exec_command',
			arguments: { sandbox_id, cmd: 'sleep 1; echo done >late', yield_time_ms: 30_000 },
		},
	});
	await until(async () => {
		const { commands } = await state.adminJson('command', 'list', sandbox_id);
		return commands.some((command) => command.status === 'running');
	}, 'the command runs');
	server.process.stdout.destroy();
	assert.deepEqual(await within(server.exited, 'the end'), { code: 1, signal: null });
	const other = new RawServer(t, { env: state.env });
	await other.initialize();
	await until(async () => {
		const result = await other.call('file_read', { sandbox_id, path: 'late' });
		return !result.isError && result.structuredContent.content === 'done\n';
	}, 'the file is published');
});

test('a cancelled call is not answered and its command goes on', async (t) => {
	const { state, sandbox_id, server } = await start(t);
	server.send({
		jsonrpc: '2.0',
		id: 9,
		method: 'tools/call',
		params: {
			name: 'exec_command',
			arguments: { sandbox_id, cmd: 'read -r go; echo went >went', yield_time_ms: 50_000 },
		},
	});
	const running = await until(async () => {
		const { commands } = await state.adminJson('command', 'list', sandbox_id);
		return commands.find((command) => command.status === 'running');
	}, 'the command runs');
	const cancel = (requestId) => server.send({
		jsonrpc: '2.0',
		method: 'notifications/cancelled',
		params: { requestId, reason: 'test' },
	});
	cancel('9'); // a string is another id: still waiting
	cancel(9);
	cancel(9); // over already
	cancel(1); // initialize, answered long ago
	await server.ping();
	assert.deepEqual(server.lines, []);
	// The id is known from the list, which may be before the terminal is there.
	const fed = await until(async () => {
		const result = await server.call('write_command_stdin', {
			sandbox_id,
			command_session_id: running.command_session_id,
			stdin: 'go\n',
			yield_time_ms: 30_000,
		});
		return result.structuredContent.error?.kind === 'server_busy' ? undefined : result;
	}, 'the command takes its line');
	assert.equal(fed.structuredContent.publish.no_op, false);
	assert.deepEqual(server.lines, []);
});

test('ids that are equal, and 1 beside "1", each get an answer', async (t) => {
	const { sandbox_id, server } = await start(t);
	const params = { name: 'file_read', arguments: { sandbox_id, path: 'f' } };
	for (const id of [1, '1', 1]) server.send({ jsonrpc: '2.0', id, method: 'tools/call', params });
	for (const id of [1, '1', 1]) assert.ok(!(await server.answer(id)).result.isError);
});

test('a batch of 2025-03-26 carries tool calls', async (t) => {
	const { sandbox_id, server } = await start(t);
	await server.initialize('2025-03-26');
	const write = (id, content) => ({
		jsonrpc: '2.0',
		id,
		method: 'tools/call',
		params: { name: 'file_write', arguments: { sandbox_id, path: 'same', content } },
	});
	server.send([write('a', 'a\n'), { jsonrpc: '2.0', id: 'p', method: 'ping' }, write('b', 'b\n')]);
	const answers = JSON.parse(await server.line((line) => line.startsWith('[')));
	assert.deepEqual(answers.map((answer) => answer.id).sort(), ['a', 'b', 'p']);
	for (const { id, result } of answers) if (id !== 'p') assert.ok(!result.isError);
	const { structuredContent } = await server.call('file_read', { sandbox_id, path: 'same' });
	assert.ok(['a\n', 'b\n'].includes(structuredContent.content));
});

test('a daemon that dies answers the calls that wait, and the next call starts it', async (t) => {
	const { state, sandbox_id, server } = await start(t);
	server.send({
		jsonrpc: '2.0',
		id: 1,
		method: 'tools/call',
		params: {
			name: 'exec_command',
			arguments: { sandbox_id, cmd: 'echo kept >kept; read -r x', yield_time_ms: 50_000 },
		},
	});
	await until(async () => {
		const { commands } = await state.adminJson('command', 'list', sandbox_id);
		return commands.some((command) => command.status === 'running');
	}, 'the command runs');
	const { daemon_pid } = await state.adminJson('inspect', sandbox_id);
	assert.match(await readFile(`/proc/${daemon_pid}/cmdline`, 'utf8'), /sandboxd/);
	process.kill(daemon_pid, 'SIGKILL');
	const { kind, message } = errorOf((await server.answer(1)).result);
	assert.equal(kind, 'connection_error');
	assert.match(message, /running commands have ended/);
	const after = await server.call('file_read', { sandbox_id, path: 'f' });
	assert.equal(after.structuredContent.content, 'f\n', JSON.stringify(after));
});
