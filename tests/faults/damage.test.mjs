// SPDX-License-Identifier: MIT
// Files of the store that were emptied, removed, or have one wrong byte: the daemon starts and
// serves the rest, or says which file keeps it from starting; verify names each damage and exits
// with 1. Nothing damaged is ever taken for sound.
import assert from 'node:assert/strict';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { World } from './world.mjs';

const damages = {
	emptied: (path) => writeFile(path, ''),
	removed: (path) => rm(path),
	async 'with a wrong byte'(path) {
		const bytes = await readFile(path);
		bytes[Math.floor(bytes.length / 2)] ^= 0x20;
		await writeFile(path, bytes);
	},
	/* of head.log: its last record, as a crash leaves of a batch that was not acknowledged */
	async 'without its end'(path) {
		const bytes = await readFile(path);
		await writeFile(path, bytes.subarray(0, bytes.lastIndexOf(10, bytes.length - 2) + 1));
	},
	async 'cut short'(path) {
		const bytes = await readFile(path);
		await writeFile(path, bytes.subarray(0, Math.floor(bytes.length / 2)));
	},
};

/** A project with three versions, a conflict that is kept as a reject, and a session with work. */
async function furnished(t) {
	const world = await World.make(t, { files: { base: 'base\n', both: 'one\ntwo\n' } });
	const { workspace_session_id } = await world.adminJson('session create');
	await world.exec('echo kept >kept', { workspace_session_id });
	const loser = await world.call('exec_command', {
		cmd: 'echo ready && read -r go && echo mine >both',
		yield_time_ms: 0,
	});
	await world.call('file_write', { path: 'first', content: 'first\n' });
	await world.call('file_write', { path: 'both', content: 'theirs\n' });
	const refused = await world.call('write_command_stdin', {
		command_session_id: loser.command_session_id,
		stdin: 'go\n',
		yield_time_ms: 50_000,
	});
	assert.ok(refused.reject_id, JSON.stringify(refused));
	await world.settled();
	const { layers } = await world.adminJson('layers');
	world.layer = layers[layers.length - 2].layer_id;
	world.reject = refused.reject_id;
	world.session = workspace_session_id;
	await world.crash();
	return world;
}

/** What is sound must be served, whatever else is broken. */
async function assertServes(world, what) {
	assert.equal(await world.text('base'), 'base\n', what);
	assert.equal(await world.text('first'), 'first\n', what);
	const written = await world.call('file_write', { path: 'later', content: `after ${what}\n` });
	assert.ok(written.type, `${what}: ${JSON.stringify(written)}`);
	const ran = await world.exec(`echo '${what}' >more && cat first`);
	assert.equal(ran.output.trim(), 'first', `${what}: ${JSON.stringify(ran)}`);
	assert.ok(ran.publish?.layer_id, `${what}: ${JSON.stringify(ran)}`);
}

async function assertVerifyNames(world, pattern, what) {
	const { code, stdout, stderr } = await world.tryAdmin('verify', world.id);
	assert.equal(code, 1, `${what}: verify should find it: ${stdout}${stderr}`);
	assert.match(stdout + stderr, pattern, what);
}

/** Files of one sandbox; serves: the daemon starts all the same. */
const items = {
	'layer.json': {
		path: (world) => join('store/layers', world.layer, 'layer.json'),
		serves: true,
		named: /layer\.json/,
	},
	'the owners of lines': {
		path: (world) => join('store/layers', world.layer, 'lines'),
		serves: true,
		named: /lines/,
		async also(world, what) {
			const blame = await world.call('file_blame', { path: 'first' });
			assert.ok(blame.error, `${what}: ${JSON.stringify(blame)}`);
		},
		unverified: ['removed'], // a layer without text files has none
	},
	'reject.json': {
		path: (world) => join('store/rejects', world.reject, 'reject.json'),
		serves: true,
		named: /rej_/,
		not: ['removed'], // a reject without it is half-made, and swept at the start
	},
	'session.json': {
		path: (world) => join('sessions', world.session, 'session.json'),
		serves: true,
	},
	'head.log': { path: () => 'store/head.log', named: /head\.log/ },
	'head.mark': { path: () => 'store/head.mark', serves: true },
	'sandbox.json': { path: () => 'sandbox.json', named: /sandbox\.json|not_found|no sandbox/ },
};

for (const [name, item] of Object.entries(items))
	test(`${name}, damaged, is found and named`, async (t) => {
		const world = await furnished(t);
		const path = join(world.home, item.path(world));
		const sound = await readFile(path);
		for (const [how, damage] of Object.entries(damages)) {
			if (item.not?.includes(how)) continue;
			const what = `${name} ${how}`;
			await damage(path);
			if (item.serves) await assertServes(world, what);
			await item.also?.(world, what);
			if (item.named && !item.unverified?.includes(how))
				await assertVerifyNames(world, item.named, what);
			await world.crash();
			await writeFile(`${path}.sound`, sound); // as it was, for the next one
			await rename(`${path}.sound`, path);
		}
	});

test('a published file whose bytes changed is found by verify', async (t) => {
	const world = await furnished(t);
	const { layers } = await world.adminJson('layers');
	await writeFile(join(world.home, 'store/layers', layers.at(-1).layer_id, 'tree/both'), 'thEirs\n');
	await assertVerifyNames(world, new RegExp(layers.at(-1).layer_id), 'changed');
});
