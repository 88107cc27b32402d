// SPDX-License-Identifier: MIT
// What a session sees of another session of its sandbox, and of the host: nothing. Every look is
// also made from where it has to succeed, to show that it can.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import test from 'node:test';
import { until } from '../support.mjs';
import { Arena, needs } from './arena.mjs';

const NAME = `sbx-escape-${process.pid}`;

const PLACES = ['/workspace', '/tmp', '/var/tmp', '/run', '/root', '/dev/shm'];

/** What one session has. Ends when all is there. */
const belongings = [
	`for d in ${PLACES.join(' ')}; do echo secret >$d/${NAME}; done`,
	'ipcmk -M 64 >/dev/null; ipcmk -Q >/dev/null; ipcmk -S 1 >/dev/null',
	`(sleep 1000 | exec /tmp/tool listen ${NAME}) &`,
	'python3 -m http.server 18080 >/dev/null 2>&1 &',
	`until /tmp/tool connect ${NAME} | grep -q allowed; do sleep 0.1; done`,
	'until /tmp/tool connect-tcp 127.0.0.1 18080 | grep -q allowed; do sleep 0.1; done',
].join('\n');

/** Looks for the belongings: [what, command, what the owner sees, what the neighbour sees]. */
const looks = [
	['files', `cat ${PLACES.map((dir) => `${dir}/${NAME}`).join(' ')} 2>/dev/null | grep -c secret`,
		String(PLACES.length), '0'],
	['processes', 'pgrep -xc tool', '1', '0'],
	['shared memory, queues and semaphores', 'ipcs | grep -c 0x', '3', '0'],
	['abstract sockets', `/tmp/tool connect ${NAME}`, 'allowed', 'ECONNREFUSED'],
	['ports of localhost', '/tmp/tool connect-tcp 127.0.0.1 18080', 'allowed', 'ECONNREFUSED'],
	['what listens', 'grep -c 18080 /proc/net/tcp; ss -Htl | grep -c 18080', '0\n1', '0\n0'],
];

test('sessions of one sandbox', { skip: needs('gcc', 'python3', 'ipcmk', 'ss') }, async (t) => {
	const arena = await Arena.make(t);
	const id = await arena.sandbox('neighbours');
	const owner = await arena.session(id);
	const neighbour = await arena.session(id);
	const running = await owner.leave('read -r line; echo "got $line"');
	await owner.output(belongings);
	for (const [what, cmd, own, others] of looks)
		await t.test(`${what} of another session`, async () => {
			await owner.expect(cmd, own);
			await neighbour.expect(cmd, others);
		});

	await t.test('terminals of another session', async () => {
		const cmd = 'stat -c %d /dev/pts'; // the file system of its terminals
		assert.notEqual(await owner.output(cmd), await neighbour.output(cmd));
	});

	await t.test('kill -1 and pkill -f end nothing of another session', async () => {
		await neighbour.leave('sleep 1000');
		await neighbour.result(`pkill -9 -f '[l]isten'; pkill -9 -f '[r]ead -r'; kill -9 -1`);
		await until(async () => (await neighbour.output('pgrep -c sleep')) === '0', 'its own end');
		await owner.expect('pgrep -xc tool', '1');
		const done = await arena.tool('write_command_stdin', { sandbox_id: id, stdin: 'on\n',
			command_session_id: running.command_session_id, yield_time_ms: 30_000 });
		assert.equal(done.exit_code, 0);
		assert.match(done.output, /got on/);
	});
});

test('sockets of the host', { skip: needs('gcc') }, async (t) => {
	const arena = await Arena.make(t);
	const session = await arena.session(await arena.sandbox('host-sockets'));

	await t.test('abstract sockets', async () => {
		const listener = spawn(join(arena.bin, 'tool'), ['listen', NAME]);
		t.after(() => listener.kill('SIGKILL'));
		await once(listener.stdout, 'data');
		assert.equal(await arena.onHost('tool', 'connect', NAME), 'allowed');
		await session.expect(`/tmp/tool connect ${NAME}`, 'ECONNREFUSED');
	});

	await t.test('the loopback of the host', async () => {
		const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
		t.after(() => server.close());
		await once(server, 'listening');
		const port = String(server.address().port);
		assert.equal(await arena.onHost('tool', 'connect-tcp', '127.0.0.1', port), 'allowed');
		await session.expect(`/tmp/tool connect-tcp 127.0.0.1 ${port}`, 'ECONNREFUSED');
	});

	await t.test("sandboxd's socket", async () => {
		const path = join(arena.state.env.SBX_STATE_DIR, 'host-sockets', 'sandboxd.sock');
		assert.equal(await arena.onHost('tool', 'connect-path', path), 'allowed');
		await session.expect(`/tmp/tool connect-path ${path}`, 'ENOENT');
	});
});
