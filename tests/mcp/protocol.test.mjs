// SPDX-License-Identifier: MIT
// The wire itself, by hand: ids, bad lines, batches, eras, streams that end or block. No sandbox.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { META, RawServer, serverPath, within } from './support.mjs';

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const LINE_MAX = 64 << 20;

const ping = (id) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`;
const rss = async (pid) => {
	const status = await readFile(`/proc/${pid}/status`, 'utf8');
	return Number(/^VmHWM:\s+(\d+)/m.exec(status)[1]) * 1024;
};

test('ids come back byte for byte', async (t) => {
	const server = new RawServer(t);
	const long = `"${'x'.repeat(10_000)}"`;
	const ids = ['0', '-1', '""', '"0"', '"é"', '"\\u00e9\\""', '9007199254740993', '1.0', '1.5',
		'1e3', '123456789012345678901234567890', long];
	for (const id of ids) {
		server.send(`${ping(id)}\n`);
		assert.equal(await server.line(), `{"jsonrpc":"2.0","id":${id},"result":{}}`);
	}
	for (const id of ['null', 'true', '{}', '[1]']) {
		server.send(`${ping(id)}\n`);
		const answer = JSON.parse(await server.line());
		assert.equal(answer.id, null);
		assert.equal(answer.error.code, INVALID_REQUEST);
	}
	await server.ping();
});

test('a bad line costs nothing but its own error', async (t) => {
	const server = new RawServer(t);
	const cases = [
		['{bad', PARSE_ERROR],
		['[', PARSE_ERROR],
		[ping(1) + ping(2), PARSE_ERROR],
		['{"jsonrpc":"2.0","id":1,', PARSE_ERROR], // one object split by a newline,
		['"method":"ping"}', PARSE_ERROR], //          both halves
		[Buffer.from([...Buffer.from('{"jsonrpc":"2.0","id":"'), 0xff, 0x22, 0x7d]), PARSE_ERROR],
		['{"jsonrpc":"2.0","id":"\u0001","method":"ping"}', PARSE_ERROR],
		['{"jsonrpc":"2.0","id":1,\0"method":"ping"}', PARSE_ERROR],
		['\0', PARSE_ERROR],
		['{"jsonrpc":"2.0","id":NaN,"method":"ping"}', PARSE_ERROR],
		['{"jsonrpc":"2.0","id":1.,"method":"ping"}', PARSE_ERROR],
		['{"jsonrpc":"2.0","id":-01,"method":"ping"}', PARSE_ERROR],
		['['.repeat(10_000) + ']'.repeat(10_000), PARSE_ERROR],
		[`{"a":`.repeat(10_000), PARSE_ERROR],
		['42', INVALID_REQUEST],
		['"x"', INVALID_REQUEST],
		['null', INVALID_REQUEST],
		['{}', INVALID_REQUEST],
		['{"jsonrpc":"1.0","id":7,"method":"ping"}', INVALID_REQUEST],
		['{"jsonrpc":"2.0","id":7}', INVALID_REQUEST],
		['{"jsonrpc":"2.0","id":7,"method":5}', INVALID_REQUEST],
		['{"jsonrpc":"2.0","id":7,"method":"ping","params":7}', INVALID_REQUEST],
	];
	for (const [line, code] of cases) {
		server.send(line);
		server.send('\n');
		const answer = JSON.parse(await server.line());
		assert.equal(answer.error?.code, code, `${line.slice(0, 60)}: ${JSON.stringify(answer)}`);
		if (code === PARSE_ERROR) assert.equal(answer.id, null);
		await server.ping();
	}
});

test('blank lines, CRLF, a byte order mark and a slow half line are taken', async (t) => {
	const server = new RawServer(t);
	server.send('\n  \n\r\n');
	server.send(`${ping(1)}\r\n\ufeff${ping(2)}\n${ping(3).slice(0, 20)}`);
	assert.equal(JSON.parse(await server.line()).id, 1);
	assert.equal(JSON.parse(await server.line()).id, 2);
	server.send(`${ping(3).slice(20)}\n`);
	assert.equal(JSON.parse(await server.line()).id, 3);
	assert.deepEqual(server.lines, []);
});

test('nothing is said to notifications and stray answers', async (t) => {
	const server = new RawServer(t);
	await server.initialize();
	const silent = [
		{ jsonrpc: '2.0', method: 'notifications/unheard/of' },
		{ jsonrpc: '2.0', method: 'notifications/cancelled' },
		{ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'nobody' } },
		{ jsonrpc: '2.0', method: 'tools/list' },
		{ jsonrpc: '2.0', method: 'ping' },
		{ jsonrpc: '2.0', id: 1, result: {} },
	];
	for (const message of silent) server.send(message);
	await server.ping();
	assert.deepEqual(server.lines, []);
});

test('batches exist in 2025-03-26 only', async (t) => {
	const note = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
	const cases = [
		[`[${ping(1)},${ping('"2"')}]`, (a) => a.length === 2 && a[0].id === 1 && a[1].id === '2'],
		[`[${ping(1)},${note}]`, (a) => a.length === 1 && a[0].id === 1],
		['[]', (a) => a.error.code === INVALID_REQUEST],
		['[1]', (a) => a.length === 1 && a[0].error.code === INVALID_REQUEST],
		[`[${ping(1)},1]`, (a) => a.length === 2 && a[1].error.code === INVALID_REQUEST],
		[`[[${ping(1)}]]`, (a) => a.length === 1 && a[0].error.code === INVALID_REQUEST],
	];
	const server = new RawServer(t);
	for (const version of ['2025-03-26', '2025-11-25', '2024-11-05', '2025-06-18']) {
		await server.initialize(version);
		for (const [line, fits] of cases) {
			server.send(`${line}\n`);
			const answer = JSON.parse(await server.line());
			if (version === '2025-03-26') assert.ok(fits(answer), JSON.stringify(answer));
			else assert.equal(answer.error.code, INVALID_REQUEST);
			await server.ping();
		}
	}
	await server.initialize('2025-03-26');
	server.send(`[${note},${note}]\n`);
	await server.ping();
	assert.deepEqual(server.lines, []);
});

test('initialize agrees on a legacy revision, whatever is asked', async (t) => {
	const server = new RawServer(t);
	await server.ping();
	const known = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
	for (const version of known)
		assert.equal((await server.initialize(version)).protocolVersion, version);
	for (const version of ['2099-01-01', '2026-07-28', '', 1, undefined]) {
		const result = await server.initialize(version);
		assert.equal(result.protocolVersion, '2025-11-25');
		assert.equal(typeof result.serverInfo.name, 'string');
		assert.equal(typeof result.serverInfo.version, 'string');
		assert.deepEqual(result.capabilities, { tools: {} });
	}
	assert.ok((await server.request('initialize', undefined)).result);
});

test('methods that are not offered are not found', async (t) => {
	const server = new RawServer(t);
	await server.initialize();
	const methods = ['nope', 'resources/list', 'prompts/list', 'logging/setLevel',
		'completion/complete', 'subscriptions/listen', 'notifications/initialized'];
	for (const method of methods)
		assert.equal((await server.request(method, {})).error.code, METHOD_NOT_FOUND, method);
	const unknown = await server.request('tools/call', { name: 'nope', arguments: {} });
	assert.equal(unknown.error.code, INVALID_PARAMS);
	assert.match(unknown.error.message, /nope/);
	for (const cursor of ['x', '', 0]) {
		const answer = await server.request('tools/list', { cursor });
		assert.equal(answer.error.code, INVALID_PARAMS);
	}
	assert.ok((await server.request('tools/list', { _meta: { progressToken: 1 } })).result);
});

test('2026-07-28 is served request by request, without a handshake', async (t) => {
	const server = new RawServer(t);
	const { result } = await server.request('server/discover', { _meta: META });
	assert.equal(result.resultType, 'complete');
	assert.deepEqual(result.supportedVersions, ['2026-07-28']);
	assert.deepEqual(result.capabilities, { tools: {} });
	assert.ok(Number.isInteger(result.ttlMs) && result.ttlMs >= 0);
	assert.ok(['public', 'private'].includes(result.cacheScope));
	assert.equal(result._meta['io.modelcontextprotocol/serverInfo'].name, 'sbx');

	const list = (await server.request('tools/list', { _meta: META })).result;
	assert.equal(list.resultType, 'complete');
	assert.ok(Number.isInteger(list.ttlMs) && ['public', 'private'].includes(list.cacheScope));

	const refused = await server.call('file_read', {}, META);
	assert.equal(refused.resultType, 'complete');
	assert.equal(refused.structuredContent.error.kind, 'invalid_request');

	const version = 'io.modelcontextprotocol/protocolVersion';
	for (const requested of ['1900-01-01', '2025-11-25', '']) {
		const _meta = { ...META, [version]: requested };
		const { error } = await server.request('tools/list', { _meta });
		assert.equal(error.code, -32022);
		assert.deepEqual(error.data, { supported: ['2026-07-28'], requested });
	}
	for (const key of Object.keys(META)) {
		const { [key]: _, ..._meta } = META;
		for (const method of ['tools/list', 'server/discover'])
			assert.equal((await server.request(method, { _meta })).error.code, INVALID_PARAMS);
	}
	assert.equal((await server.request('tools/list', {})).error.code, INVALID_PARAMS);
	assert.equal((await server.request('server/discover', {})).error.code, INVALID_PARAMS);
});

test('both eras share one process', async (t) => {
	const server = new RawServer(t);
	await server.initialize('2025-06-18');
	const legacy = (await server.request('tools/list', {})).result;
	const modern = (await server.request('tools/list', { _meta: META })).result;
	assert.equal(legacy.resultType, undefined);
	assert.equal(legacy.ttlMs, undefined);
	assert.equal(modern.resultType, 'complete');
	assert.deepEqual(legacy.tools, modern.tools);
});

test('arguments of the wrong kind are the tool\'s failure and name the argument', async (t) => {
	const server = new RawServer(t);
	await server.initialize();
	const exec = { sandbox_id: 's', cmd: 'true' };
	const write = { sandbox_id: 's', path: 'p' };
	const cases = [
		['exec_command', { ...exec, yield_time_ms: '500' }, /yield_time_ms/],
		['exec_command', { ...exec, yield_time_ms: '500ms' }, /yield_time_ms/],
		['exec_command', { ...exec, yield_time_ms: ' 500' }, /yield_time_ms/],
		['exec_command', { ...exec, yield_time_ms: true }, /yield_time_ms/],
		['exec_command', { ...exec, yield_time_ms: [] }, /yield_time_ms/],
		['exec_command', { ...exec, yield_time_ms: 0.5 }, /yield_time_ms/],
		['exec_command', { ...exec, yield_time_ms: -1 }, /yield_time_ms/],
		['exec_command', { ...exec, Cmd: 'x' }, /Cmd/],
		['exec_command', { ...exec, nonsense: 1 }, /nonsense/],
		['exec_command', { sandbox_id: 's' }, /cmd/],
		['exec_command', { sandbox_id: 's', cmd: null }, /cmd/],
		['exec_command', { cmd: 'true' }, /sandbox_id/],
		['file_write', { ...write, content: { a: 1 } }, /content/],
		['file_write', { ...write, content: ['x'] }, /content/],
		['file_write', { ...write, content: 42 }, /content/],
		['file_edit', { ...write, edits: '[]' }, /edits/],
		['file_edit', { ...write, edits: [{ old_string: 'a' }] }, /new_string/],
		['file_read', undefined, /sandbox_id/],
		['file_read', null, /sandbox_id/],
		['file_read', [], /object/],
		['file_read', 'x', /object/],
	];
	for (const [name, args, names] of cases) {
		const result = await server.call(name, args);
		assert.equal(result.isError, true);
		const { error } = result.structuredContent;
		assert.equal(error.kind, 'invalid_request', JSON.stringify(error));
		assert.match(error.message, names);
	}
});

test('lines of up to 64 MiB are taken, longer ones skipped with bounded memory', async (t) => {
	const server = new RawServer(t);
	const fill = (size) => {
		const head = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"';
		return Buffer.concat([
			Buffer.from(head),
			Buffer.alloc(size - head.length - 3, 'x'),
			Buffer.from('"}}\n'),
		]);
	};
	server.send(fill(LINE_MAX));
	assert.equal(JSON.parse(await server.line()).id, 1);
	const peak = await rss(server.process.pid);
	server.send(fill(LINE_MAX + 1));
	const refused = JSON.parse(await server.line());
	assert.equal(refused.id, null);
	assert.equal(refused.error.code, INVALID_REQUEST);
	for (let i = 0; i < 4; i++) server.send(Buffer.alloc(LINE_MAX, 'y'));
	server.send('\n');
	assert.equal(JSON.parse(await server.line()).error.code, INVALID_REQUEST);
	await server.ping();
	assert.deepEqual(server.lines, []);
	assert.ok((await rss(server.process.pid)) <= peak + (16 << 20), 'a skipped line is not kept');
});

test('a client that does not read makes the server wait, not grow', async (t) => {
	const server = new RawServer(t);
	await server.initialize();
	server.process.stdout.pause();
	const list = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })}\n`;
	const n = 20_000; // some 200 MB of answers
	server.send(list.repeat(n));
	server.process.stdin.end(`${ping(2)}\n`);
	await new Promise((next) => setTimeout(next, 500)); // time to do wrong; none is needed to pass
	assert.ok((await rss(server.process.pid)) < 64 << 20);
	let count = 0;
	server.process.stdout.on('data', (text) => {
		count += text.split('\n').length - 1;
		server.lines.length = 0;
	});
	server.process.stdout.resume();
	assert.deepEqual(await within(server.exited, 'the end'), { code: 0, signal: null });
	await within(
		new Promise((done) => {
			if (server.process.stdout.readableEnded) done();
			server.process.stdout.on('end', done);
		}),
		'the end of stdout',
	);
	assert.equal(count, n + 1);
});

test('everything asked before the end of stdin is answered', async (t) => {
	const server = new RawServer(t);
	server.send({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {} });
	server.send({ jsonrpc: '2.0', id: 2, method: 'tools/list' });
	server.send(ping(3)); // without a line end
	assert.deepEqual(await server.end(), { code: 0, signal: null });
	for (const id of [1, 2, 3]) assert.ok((await server.answer(id)).result);
});

test('stdin from a file or nowhere, stdout into a file', async (t) => {
	const dir = await mkdtemp(join(tmpdir(), 'sbx-mcp-files-'));
	t.after(() => rm(dir, { recursive: true }));
	await writeFile(join(dir, 'in'), `${ping(1)}\n${ping(2)}`);
	await writeFile(join(dir, 'out'), 'kept\n');
	const input = openSync(join(dir, 'in'), 'r');
	const output = openSync(join(dir, 'out'), 'a');
	t.after(() => [input, output].forEach((fd) => closeSync(fd)));
	const server = new RawServer(t, { stdio: [input, output, 'pipe'] });
	assert.deepEqual(await within(server.exited, 'the end'), { code: 0, signal: null });
	const lines = (await readFile(join(dir, 'out'), 'utf8')).split('\n');
	assert.deepEqual(lines.map((line) => (line.startsWith('{') ? JSON.parse(line).id : line)),
		['kept', 1, 2, '']);
	const idle = new RawServer(t, { stdio: ['ignore', 'pipe', 'pipe'] });
	assert.deepEqual(await within(idle.exited, 'the end'), { code: 0, signal: null });
});

test('SIGTERM, SIGINT and SIGHUP end it like the end of stdin', async (t) => {
	for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) {
		const server = new RawServer(t);
		await server.ping();
		server.process.kill(signal);
		assert.deepEqual(await within(server.exited, signal), { code: 0, signal: null });
	}
});

test('it ends when nobody reads its answers any more', async (t) => {
	const idle = new RawServer(t);
	await idle.ping();
	idle.process.stdout.destroy();
	assert.deepEqual(await within(idle.exited, 'the end when idle'), { code: 1, signal: null });

	const busy = new RawServer(t);
	await busy.ping();
	busy.process.stdout.destroy();
	busy.send(`${ping(1)}\n`);
	assert.deepEqual(await within(busy.exited, 'the end when busy'), { code: 1, signal: null });
});

test('stderr may be closed, or a full pipe that nobody reads', async (t) => {
	const closed = new RawServer(t, { stdio: ['pipe', 'pipe', 'ignore'] });
	await closed.ping();
	assert.deepEqual(await closed.end(), { code: 0, signal: null });

	const dir = await mkdtemp(join(tmpdir(), 'sbx-mcp-stderr-'));
	t.after(() => rm(dir, { recursive: true }));
	const full = spawn(
		'/bin/sh',
		['-c', 'mkfifo "$1" && exec 3<>"$1" && head -c 65536 /dev/zero >&3 && ' +
			'exec "$0" --set runtime 2>&3', serverPath, join(dir, 'stderr')],
		{ stdio: ['pipe', 'pipe', 'inherit'] },
	);
	t.after(() => full.kill('SIGKILL'));
	const exited = new Promise((done) => full.on('exit', (code) => done(code)));
	full.stdin.write(`${ping(1)}\n`);
	await within(new Promise((done) => full.stdout.once('data', done)), 'an answer');
	full.stdout.destroy(); // which it has something to say about
	assert.equal(await within(exited, 'the end'), 1);
});

test('options are exact', async () => {
	const run = (...args) => spawnSync(serverPath, args, { input: '', encoding: 'utf8' });
	assert.equal(run('--set', 'runtime').status, 0);
	assert.equal(run('--set', 'runtime', '--text-content').status, 0);
	for (const args of [[], ['--set'], ['--set', 'nope'], ['--nope'], ['--set', 'runtime', 'x']]) {
		const { status, stdout, stderr } = run(...args);
		assert.equal(status, 2, args.join(' '));
		assert.equal(stdout, '');
		assert.match(stderr, /sandbox-mcp/);
	}
	assert.match(run('--help').stdout, /--text-content/);
	assert.match(run('--version').stdout, /^sandbox-mcp \d+\.\d+/);
});

test('--text-content repeats the result as text', async (t) => {
	const server = new RawServer(t, { args: ['--set', 'runtime', '--text-content'] });
	await server.initialize('2024-11-05');
	const { content, structuredContent } = await server.call('file_read', {});
	assert.equal(content.length, 1);
	assert.equal(content[0].type, 'text');
	assert.deepEqual(JSON.parse(content[0].text), structuredContent);
});
