// SPDX-License-Identifier: MIT
// Hundreds of publications in a row, in a state directory with a long path: the stack is kept
// short, so a command starts as fast at the end as at the beginning, contents and owners are right,
// and a kill right after a squash changes nothing.
//
// SBX_MANY_WRITES (default 150) and SBX_MANY_APPENDS (default 40); 700 and 150 by hand.
import assert from 'node:assert/strict';
import test from 'node:test';
import { setting, until, World } from './world.mjs';

const WRITES = setting('SBX_MANY_WRITES', 150);
const APPENDS = setting('SBX_MANY_APPENDS', 40);
const LAYERS_MAX = 80; // squashing begins above 40; sessions and a busy machine delay it
const FLAT = 5; // times slower at the end than at the start at most; machines are noisy
const LONG_PATH = 150;

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

/** Milliseconds of an empty command: the median of some. */
async function emptyCommand(world) {
	const times = [];
	for (let i = 0; i < 7; i++) {
		const start = performance.now();
		const ran = await world.exec('true');
		assert.equal(ran.status, 'ok', JSON.stringify(ran));
		times.push(performance.now() - start);
	}
	return median(times);
}

async function layerCount(world) {
	return (await world.adminJson('inspect')).layer_count;
}

/** Writes until the stack has become shorter; gives how many writes that took. */
async function untilSquashed(world) {
	let last = await layerCount(world);
	for (let i = 0; i < 120; i++) {
		await world.call('file_write', { path: 'squash', content: `${i}\n` });
		const now = await layerCount(world);
		if (now < last) return `${i}\n`;
		last = now;
	}
	throw new Error(`no squash in 120 writes, ${last} layers`);
}

test('B30: hundreds of publications leave the stack short and everything right', async (t) => {
	const world = await World.make(t, { stateName: 's'.repeat(LONG_PATH) });
	const owners = [];
	await world.exec('true');
	const first = await emptyCommand(world);
	const halfway = [];
	for (let i = 0; i < WRITES; i++) {
		const written = await world.call('file_write', { path: `f${i % 10}`, content: `${i}\n` });
		assert.ok(!written.error, `write ${i}: ${JSON.stringify(written)}`);
		if (i === Math.floor(WRITES / 2)) halfway.push(await emptyCommand(world));
	}
	for (let i = 0; i < APPENDS; i++) {
		const ran = await world.exec(`echo ${i} >>log`);
		assert.ok(ran.publish?.layer_id, `append ${i}: ${JSON.stringify(ran)}`);
		owners.push(`workspace_session:${ran.workspace_session_id}`);
	}
	const last = await emptyCommand(world);
	const layers = await layerCount(world);
	t.diagnostic(
		`empty command: ${first.toFixed(1)} ms at first, ${halfway[0].toFixed(1)} halfway, ${last.toFixed(1)} at the end; ${layers} layers`,
	);
	assert.ok(layers <= LAYERS_MAX, `${layers} layers`);
	assert.ok(last < first * FLAT, `${first} ms at first, ${last} ms at the end`);

	const expected = Array.from({ length: APPENDS }, (_, i) => `${i}\n`).join('');
	const assertRight = async () => {
		assert.equal(await world.text('log'), expected);
		assert.deepEqual(await world.owners('log'), owners);
		for (let i = WRITES - 10; i < WRITES; i++) assert.equal(await world.text(`f${i % 10}`), `${i}\n`);
		assert.equal(await world.damage(), '');
	};
	await assertRight();

	const written = await untilSquashed(world);
	await world.crash();
	assert.equal(await world.text('squash'), written, 'after a kill at a squash');
	await assertRight();
	await world.admin('squash', world.id);
	await world.crash();
	await assertRight();
	await world.admin('gc', world.id);
	await assertRight();
});

test('sessions that pin many versions keep neither the stack long nor their work from landing', async (t) => {
	const N = 24;
	const lines = Array.from({ length: N }, (_, i) => `line ${i}`);
	const world = await World.make(t, { files: { table: `${lines.join('\n')}\n`, own: 'own\n' } });
	const sessions = [];
	const owners = Array(N).fill('original');
	for (let i = 0; i < N; i++) {
		// 5 layers between two pins: no run between them is worth a squash
		const { workspace_session_id } = await world.adminJson('session create');
		sessions.push(workspace_session_id);
		for (let k = 0; k < 4; k++)
			assert.ok(!(await world.call('file_write', { path: `f${k}`, content: `${i}\n` })).error);
		const edited = await world.exec(`sed -i 's/^line ${i}$/line ${i} of the head/' table`);
		assert.ok(edited.publish?.layer_id, JSON.stringify(edited));
		owners[i] = `workspace_session:${edited.workspace_session_id}`;
		lines[i] = `line ${i} of the head`;
	}
	await until(async () => (await layerCount(world)) <= LAYERS_MAX, 'a squash across the pins');
	for (const [i, workspace_session_id] of sessions.entries()) {
		const seen = await world.exec('grep -c "of the head" table; cat f0 2>&1', { workspace_session_id });
		assert.match(seen.output, i ? new RegExp(`^${i}\n${i - 1}\n`) : /^0\ncat: /, JSON.stringify(seen));
	}
	/* each from its own version: a line that nobody else changed, and one that somebody did */
	for (const [i, workspace_session_id] of sessions.entries()) {
		if (i === N - 1) continue;
		const cmd = `echo ${i} >s${i}; sed -i 's/^line ${N - 1}$/mine/' table`;
		await world.exec(i % 4 === 1 ? cmd : `echo ${i} >s${i}`, { workspace_session_id });
		const { code, stdout, stderr } = await world.tryAdmin('session', 'publish', world.id, workspace_session_id);
		assert.equal(code, i % 4 === 1 ? 1 : 0, `${i}: ${stdout}${stderr}`);
		assert.equal(await world.text(`s${i}`), i % 4 === 1 ? null : `${i}\n`);
	}
	assert.equal(await world.text('table'), `${lines.join('\n')}\n`);
	assert.deepEqual(await world.owners('table'), owners);
	await world.crash();
	assert.equal(await world.text('table'), `${lines.join('\n')}\n`);
	assert.deepEqual(await world.owners('table'), owners);
	assert.equal(await world.damage(), '');
});
