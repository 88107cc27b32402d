// SPDX-License-Identifier: MIT
// kill -9 at each step of a commit: strace kills the worker or sandboxd when it enters one
// of its system calls that change the disk or answer somebody. Afterwards sandboxd is killed too, started
// again, and every publication that was acknowledged must be there to the byte, none by halves, and
// none that a finished command made may be gone.
//
// SBX_FAULT_POINTS: how many calls are tried for each process and kind of change (default 3); all of
// them are tried by hand with a large number.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import test from 'node:test';
import { bringIn, files, kinds, matches } from './changes.mjs';
import { missing, setting, spread, World } from './world.mjs';

const POINTS = setting('SBX_FAULT_POINTS', 3);
const CALLS = [
	'renameat,renameat2,rename,linkat,symlinkat,unlinkat,mkdirat,ftruncate,utimensat',
	'fsetxattr,fremovexattr,fchmod,fchown',
	'fsync,fdatasync,syncfs,sync_file_range,write,pwrite64,writev,sendmsg,sendto',
].join(',');
const skip = missing('strace');

/** sandboxd goes on after its answer: it prepares the next session and buries the last. */
async function someTimeFor(probe) {
	for (let i = 0; i < 30 && !probe(); i++) await new Promise((next) => setTimeout(next, 10));
}

async function check(world, kind, comm, n, acknowledged, what) {
	await world.settled();
	assert.equal(await world.damage(), '', what);
	let after = await matches(world, kind.after(n));
	if (acknowledged) assert.equal(after, true, `${what}: acknowledged, but`);
	if (after === true) return;
	if (comm === 'sandboxd' && kind.stoppedMidway) {
		if (await kind.stoppedMidway(world, n)) await kind.undo(world, n);
		return;
	}
	assert.equal(await matches(world, kind.before(n)), true, `${what}: half there: ${after}, and`);
	if (kind.may_be_gone) return;
	await kind.kept?.(world);
	await kind.lift?.(world, n);
	await bringIn(world);
	after = await matches(world, kind.after(n));
	assert.equal(after, true, `${what}: lost`);
}

async function checkOwners(world, kind, n) {
	for (const [path, text] of Object.entries(kind.after(n)))
		if (text !== null && !path.startsWith('moved')) {
			const owners = await world.owners(path);
			assert.equal(owners.length, text.split('\n').length - 1, `owners of ${path}`);
			assert.ok(!owners.includes('unknown'), `owners of ${path}: ${owners}`);
		}
}

/** The n-th change, with a process killed at a call. False: it did not make that call. */
async function point(world, kind, comm, { call, n: nth }, n) {
	await world.start();
	await kind.prepare?.(world, n);
	await world.client();
	const pids = await world.pids(comm);
	const untrace = await world.trace(pids, '-e', `trace=${CALLS}`, '-e', `inject=${call}:signal=KILL:when=${nth}`);
	const result = await kind.run(world, n);
	if (comm === 'sandboxd') await someTimeFor(() => !existsSync(`/proc/${pids[0]}`));
	const log = await untrace();
	const killed = / = \?\s*$|killed by SIGKILL/m.test(log); // a call without an end
	const last = log.trim().split('\n').slice(-2).join(' | ');
	await world.crash();
	const what = `killed ${comm} at ${call} ${nth} (${last}), answer ${JSON.stringify(result).slice(0, 300)}`;
	const acknowledged = Boolean(result.publish?.layer_id ?? result.publish?.type);
	if (!killed && !kind.refused) assert.ok(acknowledged, `nothing was killed, yet ${what}`);
	await check(world, kind, comm, n, acknowledged, what);
	const there = (await matches(world, kind.after(n))) === true;
	if (there) await checkOwners(world, kind, n);
	if (there) await kind.undo?.(world, n);
	return killed;
}

/** The calls that a process makes for one undisturbed change. */
async function callPoints(world, kind, comm) {
	await world.start();
	await kind.prepare?.(world, 0);
	await world.client();
	const points = await world.callPoints(comm, CALLS, async () => {
		await kind.run(world, 0);
		if (comm === 'sandboxd') await someTimeFor(() => false);
	});
	await kind.undo?.(world, 0);
	return points;
}

for (const [name, kind] of Object.entries(kinds))
	for (const comm of ['sbx-worker', 'sandboxd'])
		test(`${name} survives ${comm} being killed at any step`, { skip }, async (t) => {
			const world = await World.make(t, { files });
			const points = await callPoints(world, kind, comm);
			assert.ok(points.length > 2, `${comm} makes ${points.length} calls`);
			let killed = 0;
			let n = 0;
			for (const at of spread(points, POINTS)) killed += await point(world, kind, comm, at, ++n);
			assert.ok(killed > 0, 'nothing was ever killed');
			t.diagnostic(`${killed} killed, of ${points.length} points`);
		});
