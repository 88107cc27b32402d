// SPDX-License-Identifier: MIT
// Versions older than the head: as far back as they may take disk they can be asked for, also after
// a restart; beyond that nothing of them is left, and nothing that lives misses them.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { promisify } from 'node:util';
import { State, until } from '../support.mjs';
import { Wire } from './wire.mjs';

const KIB = 1024;

async function start(t, ...options) {
	const state = await State.make(t);
	const id = await state.sandbox('history', { base: 'base\n' }, ...options);
	await state.admin('inspect', id);
	return { state, id, wire: await Wire.connect(t, state, id) };
}

/** n publications of one file, each of so many bytes; gives the last content. */
async function rewrite(wire, n, size) {
	let content;
	for (let i = 0; i < n; i++) {
		content = `${i} `.padEnd(size - 1, 'x') + '\n';
		await wire.result('file_write', { path: 'big', content });
	}
	return content;
}

const storePath = (state, id) => join(state.env.SBX_STATE_DIR, id, 'store');
const storedLayers = (state, id) => readdir(join(storePath(state, id), 'layers'));

async function diskKib(path) {
	// what is being removed meanwhile is complained of
	const { stdout } = await promisify(execFile)('du', ['-sk', path]).catch((error) => error);
	return Number(stdout.split('\t')[0]);
}

async function crash(state, id) {
	const { daemon_pid: pid } = await state.adminJson('inspect', id);
	process.kill(pid, 'SIGKILL');
	await until(async () => (await state.adminJson('inspect', id)).daemon_pid !== pid, 'a new one');
}

test('old versions can be asked for, also after a squash and a restart', async (t) => {
	const { state, id, wire } = await start(t);
	await rewrite(wire, 60, 10);
	await wire.result('squash');
	const before = await state.admin('cat', id, 'big', '--at', '10');
	assert.match(before, /^8 /);
	await crash(state, id);
	assert.equal(await state.admin('cat', id, 'big', '--at', '10'), before);
	assert.match(await state.admin('diff', id, '10..11'), /-8 x+\n\+9 x+/);
	assert.equal((await state.adminJson('inspect', id)).oldest_version, 1);
});

test('gc forgets old versions and says so when asked for one', async (t) => {
	const { state, id, wire } = await start(t);
	const last = await rewrite(wire, 60, 10);
	await wire.result('squash');
	await wire.result('gc');
	const { version, oldest_version, layer_count } = await state.adminJson('inspect', id);
	assert.equal(oldest_version, version);
	// the last ones go with the session that was kept ready on them
	await until(
		async () => (await storedLayers(state, id)).length === layer_count,
		'the layers of old versions to go',
	);
	await assert.rejects(state.admin('cat', id, 'big', '--at', '10'), /no version 10 any more/);
	assert.equal(await state.admin('cat', id, 'big'), last);
});

test('what old versions take of the disk stays within --history-max', async (t) => {
	const { state, id, wire } = await start(t, '--history-max', '1M');
	const { workspace_session_id } = await wire.result('session_create');
	const ask = (cmd) => wire.result('exec_command', { cmd, workspace_session_id });
	let last;
	for (let round = 0; round < 3; round++) {
		last = await rewrite(wire, 50, 100 * KIB);
		await wire.result('squash');
	}
	const { version } = await state.adminJson('inspect', id);
	const { oldest_version } = await until(async () => {
		const found = await state.adminJson('inspect', id);
		return found.oldest_version > 100 && found;
	}, 'old versions to be forgotten');
	assert.ok(oldest_version <= version);
	// 15 MB were written; the head, 1 MiB of history, and what is squashed next are left
	await until(async () => (await diskKib(storePath(state, id))) < 6 * KIB, 'a small store');
	assert.equal(await state.admin('cat', id, 'big'), last);
	// the session still stands on the version that it began with
	const { status, output } = await ask('ls; cat base; echo mine >mine');
	assert.deepEqual([status, output], ['ok', 'base\nbase\n']);
	const { publish } = await wire.result('session_publish', { workspace_session_id });
	assert.equal(publish.added, 1);
	assert.deepEqual((await wire.result('verify')).damages, []);
});
