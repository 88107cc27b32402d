// SPDX-License-Identifier: MIT
// Many publications at once: all of them land.
import assert from 'node:assert/strict';
import test from 'node:test';
import { World } from '../faults/world.mjs';
import { assertPublished, ownerOf } from './pairs.mjs';

const SESSIONS = 100;

test('a hundred sessions publish disjoint changes at once, and all of them land', async (t) => {
	const table = Array.from({ length: 2 * SESSIONS }, (_, i) => `row ${i}\n`);
	const world = await World.make(t, { files: { table: table.join(''), 'dir/old': 'old\n' } });
	const ids = [];
	for (let i = 0; i < SESSIONS; i++)
		ids.push((await world.adminJson('session create')).workspace_session_id);
	await Promise.all(ids.map((workspace_session_id, i) =>
		world.exec(`sed -i 's/^row ${2 * i}$/session ${i}/' table && mkdir -p dir/new && echo ${i} >dir/new/f${i} && echo ${i} >f${i}`,
			{ workspace_session_id })));
	const { version } = await world.adminJson('inspect');
	const results = await Promise.all(ids.map((id) => world.adminJson('session publish', id)));
	results.forEach(assertPublished);
	assert.equal(new Set(results.map(({ publish }) => publish.version)).size, SESSIONS, 'a version each');
	assert.ok((await world.adminJson('inspect')).version >= version + SESSIONS);

	const expected = table.map((row, i) => (i % 2 ? row : `session ${i / 2}\n`)).join('');
	assert.equal(await world.text('table'), expected);
	const owners = await world.owners('table');
	owners.forEach((owner, i) => assert.equal(owner, i % 2 ? 'original' : `workspace_session:${ids[i / 2]}`, `row ${i}`));
	const { output } = await world.exec('cat dir/new/f* f[0-9]* | sort -n | uniq -c | sort -u -k1,1n | wc -l; ls dir/new | wc -l');
	assert.equal(output, `1\n${SESSIONS}\n`, 'every file is there twice');
	assert.equal(await world.damage(), '');
});

test('a hundred commands at once in sessions of their own all land', async (t) => {
	const world = await World.make(t, { files: { f: 'f\n' } });
	const results = await Promise.all(Array.from({ length: SESSIONS }, (_, i) => world.exec(`echo ${i} >f${i}`)));
	results.forEach(assertPublished);
	for (const [i, result] of results.entries())
		assert.deepEqual(await world.owners(`f${i}`), [ownerOf(result)]);
});
