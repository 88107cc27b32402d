// SPDX-License-Identifier: MIT
// Many publications at once: all of them land, and a large one is in nobody's way.
//
// SBX_LARGE_FILES (default 10000): files of the large publication; 100000 by hand.
import assert from 'node:assert/strict';
import test from 'node:test';
import { setting, World } from '../faults/world.mjs';
import { assertPublished, ownerOf } from './pairs.mjs';

const LARGE_FILES = setting('SBX_LARGE_FILES', 10_000);
const SESSIONS = 100;
const SLOWER = 8; // times at most; a small publication beside a large one shares the machine with it
const FLOOR_MS = 250; // what a busy machine may add to anything

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

async function timed(run) {
	const start = performance.now();
	const result = await run();
	return { ms: performance.now() - start, result };
}

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

test('a large publication delays no small one and no read', async (t) => {
	const world = await World.make(t, { files: { f: 'f\n', 'table.txt': 'a\nb\n' } });
	const { workspace_session_id } = await world.adminJson('session create');
	const made = await world.exec(
		`mkdir big && cd big && for d in $(seq ${LARGE_FILES / 1000}); do mkdir $d && (cd $d && seq 1000 | split -l 1 -a 3); done`,
		{ workspace_session_id });
	assert.equal(made.status, 'ok', JSON.stringify(made));
	const small = (n) => timed(() => world.exec(`echo ${n} >small`));
	const read = () => timed(() => world.call('file_read', { path: 'table.txt' }));
	const alone = { small: [], read: [] };
	for (let i = 0; i < 9; i++) {
		alone.small.push((await small(i)).ms);
		alone.read.push((await read()).ms);
	}
	const beside = { small: [], read: [] };
	let done = false;
	const large = timed(() => world.adminJson('session publish', workspace_session_id)).finally(() => (done = true));
	for (let i = 100; !done; i++) {
		const { ms, result } = await small(i);
		assertPublished(result);
		if (done) break;
		beside.small.push(ms);
		beside.read.push((await read()).ms);
	}
	const { ms, result } = await large;
	assert.equal(result.publish.added, LARGE_FILES + LARGE_FILES / 1000 + 1);
	const said = (list) => (list.length ? `${median(list).toFixed(1)} ms, at most ${Math.max(...list).toFixed(1)}` : 'none');
	t.diagnostic(`${LARGE_FILES} files: ${ms.toFixed(0)} ms; small alone ${said(alone.small)}, beside ${said(beside.small)} (${beside.small.length}); read alone ${said(alone.read)}, beside ${said(beside.read)}`);
	if (!beside.small.length) {
		t.skip('the large publication was over before a small one');
		return;
	}
	assert.ok(median(beside.small) < SLOWER * median(alone.small) + FLOOR_MS, 'a small publication waits');
	assert.ok(median(beside.read) < SLOWER * median(alone.read) + FLOOR_MS, 'a read waits');
	assert.ok(Math.max(...beside.small) < ms / 2 + FLOOR_MS, 'one of them waited for the large one');
});
