// SPDX-License-Identifier: MIT
// A disk that fails at each step of a commit: strace makes a call of the worker that changes the
// disk fail with ENOSPC, or it and all later ones of its kind with EIO. The caller is told;
// the head stays as it was; the work is kept and comes into the head when the disk is well again,
// without a restart or repair.
//
// SBX_FAULT_POINTS: as in kill_points.test.mjs.
import assert from 'node:assert/strict';
import test from 'node:test';
import { bringIn, files, kinds, matches } from './changes.mjs';
import { missing, setting, spread, World } from './world.mjs';

const POINTS = setting('SBX_FAULT_POINTS', 3);
const CALLS = [
	'renameat,renameat2,linkat,symlinkat,mkdirat,ftruncate,utimensat,fsetxattr,fremovexattr',
	'fsync,fdatasync,syncfs,pwrite64,write',
].join(',');
const skip = missing('strace');

/** A refusal says why, in words, and where the work is. */
function assertClear(name, result, what) {
	if (name === 'file_write') {
		assert.match(result.said, /operation_failed|internal_error/, what);
	} else if (result.status) {
		assert.equal(result.status, 'ok', `the command itself is well: ${what}`);
		assert.equal(result.publish_rejected, true, what);
		assert.equal(result.publish_reject_class, 'publish_error', what);
	}
	assert.match(
		JSON.stringify(result),
		/No space left on device|Input\/output error|ended unexpectedly|reject_id/,
		what,
	);
}

async function point(world, name, errno, { call, n: nth }, when, n) {
	const kind = kinds[name];
	await kind.prepare?.(world, n);
	const daemon = await world.start();
	const untrace = await world.trace(
		await world.pids('sbx-worker'),
		'-e',
		`trace=${CALLS}`,
		'-e',
		`inject=${call}:error=${errno}:when=${when(nth)}`,
	);
	const result = await kind.run(world, n);
	const failed = (await untrace()).split('\n').find((line) => line.includes('(INJECTED)'));
	const what = `${errno} at ${call} ${nth}: ${failed}: ${JSON.stringify(result).slice(0, 600)}`;
	assert.equal(await world.start(), daemon, `the daemon is another one: ${what}`);
	assert.equal(await world.damage(), '', what);
	const published = Boolean(result.publish?.layer_id ?? result.publish?.type);
	if (published) {
		assert.equal(await matches(world, kind.after(n)), true, `acknowledged: ${what}`);
	} else {
		assertClear(name, result, what);
		assert.equal(await matches(world, kind.before(n)), true, `the head changed: ${what}`);
		await kind.kept?.(world);
		await kind.lift?.(world, n);
		if (name === 'file_write') await kind.run(world, n);
		else await bringIn(world);
		assert.equal(await matches(world, kind.after(n)), true, `lost: ${what}`);
	}
	assert.equal(await world.damage(), '', what);
	await kind.undo?.(world, n);
	return failed !== undefined && !published;
}

async function callPoints(world, kind) {
	await kind.prepare?.(world, 0);
	await world.start();
	await world.client();
	const points = await world.callPoints('sbx-worker', CALLS, () => kind.run(world, 0));
	await kind.undo?.(world, 0);
	return points;
}

for (const name of Object.keys(kinds))
	for (const [errno, when] of [
		['ENOSPC', (n) => n],
		['EIO', (n) => `${n}+`],
	])
		test(`${name}: ${errno} at any step loses nothing`, { skip }, async (t) => {
			const world = await World.make(t, { files });
			const points = await callPoints(world, kinds[name]);
			let refused = 0;
			let n = 0;
			for (const at of spread(points, POINTS)) refused += await point(world, name, errno, at, when, ++n);
			assert.ok(refused > 0, 'nothing was ever refused');
			t.diagnostic(`${refused} refused, of ${points.length} points`);
		});
