// SPDX-License-Identifier: MIT
// What outlives whom: commands outlive clients and the MCP server; transcripts, statuses and work
// outlive sandboxd (B67, B68).
import assert from 'node:assert/strict';
import test from 'node:test';
import { isAlive, Lab } from './lab.mjs';
import { until, within } from '../support.mjs';

/** The command as another client finds it, once it has ended. */
async function ended(lab, id) {
	return until(async () => {
		const { commands } = await lab.admin('command', 'list', lab.id);
		const found = commands.find((c) => c.command_session_id === id);
		assert.ok(found, `${id} is not listed`);
		return found.status === 'running' ? null : found;
	}, `the end of ${id}`);
}

test('B68: commands go on without the client that started them', async (t) => {
	const lab = await Lab.make(t);
	const deaths = {
		'stdin is closed': (server) => server.end(),
		'the server is killed': (server) => server.process.kill('SIGKILL'),
		'the server is terminated': (server) => server.process.kill('SIGTERM'),
		'nobody reads its answers': (server) => server.process.stdout.destroy(),
	};
	let n = 0;
	for (const [how, die] of Object.entries(deaths))
		await t.test(how, async () => {
			const file = `f${n++}`;
			const client = await lab.connect();
			const command = await lab.exec(`echo begun; sleep 0.6; echo ${file} >${file}; echo over`,
				{ yield_time_ms: 0 }, client);
			await die(client);
			const found = await ended(lab, command.command_session_id);
			assert.deepEqual([found.status, found.publish.added], ['ok', 1]);
			assert.equal((await lab.lines(command)).output, 'begun\nover\n');
			assert.equal((await lab.exec(`cat ${file}`)).output, `${file}\n`);
		});
	await t.test('also while it waits for the answer', async () => {
		const client = await lab.connect();
		const waiting = client.request('tools/call', { name: 'exec_command',
			arguments: { sandbox_id: lab.id, cmd: 'echo begun; sleep 0.6; echo w >w', yield_time_ms: 50_000 } });
		waiting.catch(() => {});
		const id = await until(async () => (await lab.admin('command', 'list', lab.id)).commands
			.find((c) => c.status === 'running')?.command_session_id, 'the command');
		client.process.kill('SIGKILL');
		assert.equal((await ended(lab, id)).publish.added, 1);
	});
	await t.test('another client feeds it', async () => {
		const first = await lab.connect();
		const command = await lab.exec('read x; echo "got $x"', { yield_time_ms: 0 }, first);
		await first.end();
		assert.equal((await lab.finish(command, 'it\n')).output, 'got it\n');
	});
});

test('B67: a cancelled request stops waiting, not the command', async (t) => {
	const lab = await Lab.make(t);
	const server = await lab.connect();
	server.send({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'exec_command', arguments: {
		sandbox_id: lab.id, cmd: 'for i in $(seq 8); do echo $i >>c; sleep 0.1; done', yield_time_ms: 50_000 } } });
	const { command_session_id } = await until(async () =>
		(await lab.admin('command', 'list', lab.id)).commands.at(-1), 'the command');
	const cancel = (params) => server.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
	cancel({ requestId: 9 });
	await server.ping();
	for (const odd of [{ requestId: 4711 }, { requestId: '9' }, {}, undefined, { requestId: null }]) cancel(odd);
	await server.ping();
	const done = await ended(lab, command_session_id);
	assert.deepEqual([done.status, done.publish.added], ['ok', 1]);
	assert.equal((await lab.exec('wc -l <c')).output, '8\n');
	assert.deepEqual(server.lines.filter((line) => JSON.parse(line).id === 9), []);
});

test('sandboxd is killed', async (t) => {
	const lab = await Lab.make(t, { 'a.txt': 'one\n' });
	const running = await lab.start('echo work >w.txt; for i in $(seq 500); do echo row $i; done; printf partial; sleep 300');
	await lab.shows(running, 'partial');
	const conflicting = await lab.start('echo mine >a.txt; echo up; sleep 300');
	await lab.shows(conflicting, 'up');
	await lab.tool('file_write', { path: 'a.txt', content: 'theirs\n' });
	const finished = await lab.exec('echo done; exit 9');
	const waiting = lab.stdin(running, '', { yield_time_ms: 50_000 }).catch((error) => error);
	await new Promise((next) => setTimeout(next, 300));
	await lab.crash();

	await t.test('a waiting call is answered with an error', async () => {
		const answer = await within(waiting, 'the answer');
		assert.match(answer.message, /connection_error|operation_failed|internal_error/);
	});
	lab.server = await lab.connect();
	await t.test('transcripts are whole up to the last byte', async () => {
		const rows = await lab.lines(running);
		const want = Array.from({ length: 500 }, (_, i) => `row ${i + 1}\n`).join('');
		assert.equal(rows.output, `${want}partial`);
	});
	await t.test('its work is published', async () => {
		const found = await until(async () => {
			const rows = await lab.lines(running);
			return rows.publish ?? null;
		}, 'the publication');
		assert.equal(found.added, 1);
		assert.equal((await lab.exec('cat w.txt')).output, 'work\n');
	});
	await t.test('the command is reported as ended by the crash, with its time', async () => {
		const rows = await lab.lines(running);
		assert.deepEqual([rows.status, rows.exit_code], ['error', 137]);
		assert.match(rows.notes[0], /ended by the end of the sandboxd/);
		assert.ok(rows.command_total_time_seconds >= 0 && rows.command_total_time_seconds < 60);
	});
	await t.test('or kept as a reject', async () => {
		const rows = await until(async () => {
			const r = await lab.lines(conflicting);
			return r.publish_rejected ? r : null;
		}, 'the reject');
		const { rejects } = await lab.admin('reject', 'list', lab.id);
		assert.deepEqual(rejects.map((r) => r.reject_id), [rows.reject_id]);
		assert.equal((await lab.exec('cat a.txt')).output, 'theirs\n');
	});
	await t.test('what had ended before is as it was', async () => {
		const rows = await lab.lines(finished);
		assert.deepEqual([rows.status, rows.exit_code, rows.output], ['error', 9, 'done\n']);
	});
	await t.test('stdin for the ended one is refused as for any', async () => {
		const { command_session_id } = running;
		const error = await lab.refused('operation_conflict', 'write_command_stdin',
			{ command_session_id, stdin: 'x\n' });
		assert.match(error.message, /has finished/);
	});
});

test('a status that was known survives a crash during the publication', async (t) => {
	const lab = await Lab.make(t);
	const command = await lab.start('for i in $(seq 4000); do echo $i >f$i; done; exit 6');
	await until(async () => (await lab.admin('session', 'list', lab.id)).sessions
		.some((s) => s.state === 'publishing'), 'the publication');
	await lab.crash();
	lab.server = await lab.connect();
	const rows = await until(async () => {
		const r = await lab.lines(command);
		return r.publish ? r : null;
	}, 'the end of the publication');
	assert.deepEqual([rows.status, rows.exit_code], ['error', 6]);
	assert.equal((await lab.exec('ls | wc -l')).output, '4000\n');
});

test('B68: sandbox-mcp ends with its client', async (t) => {
	const lab = await Lab.make(t);
	for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'])
		await t.test(signal, async () => {
			const server = await lab.connect();
			server.process.kill(signal);
			await within(server.exited, 'its end');
			assert.ok(!isAlive(server.process.pid));
		});
});
