// SPDX-License-Identifier: MIT
// A store on an ext4 file system of its own that becomes full, of blocks or of inodes, while a
// command writes and while its work is published. The command sees ENOSPC as anywhere; a
// publication is there as a whole or not at all; when there is room again everything goes on
// without repair.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { cannotMount, run, smallDisk } from './disk.mjs';
import { World } from './world.mjs';

const MIB = 1 << 20;
const skip = cannotMount();

async function worldOn(t, bytes, ...mkfsOptions) {
	const { at, undo } = await smallDisk(bytes, ...mkfsOptions);
	try {
		const world = await World.make(t, { files: { base: 'base\n', edited: 'one\n' }, parent: at });
		await world.call('file_write', { path: 'first', content: 'first\n' });
		t.after(undo); // hooks run in order: after the world's own
		return { world, at };
	} catch (error) {
		await undo();
		throw error;
	}
}

/** The older state is untouched, and new work goes in. */
async function assertSound(world, name) {
	assert.equal(await world.damage(), '');
	assert.equal(await world.text('base'), 'base\n');
	assert.equal(await world.text('first'), 'first\n');
	const ran = await world.exec(`echo ${name} >${name}`);
	assert.ok(ran.publish?.layer_id, JSON.stringify(ran));
	assert.equal(await world.text(name), `${name}\n`);
}

test('a command on a full disk sees ENOSPC, and its work is published whole or kept', { skip }, async (t) => {
	const { world } = await worldOn(t, 80 * MIB);
	const ran = await world.exec(
		'dd if=/dev/zero of=big bs=1M count=300 2>err; echo rc=$?; grep -o "No space left.*" err; echo note >note',
		{ yield_time_ms: 50_000 },
	);
	assert.match(ran.output, /rc=1/, JSON.stringify(ran));
	assert.match(ran.output, /No space left on device/);
	await world.settled();
	assert.equal(await world.damage(), '');
	if (ran.publish?.layer_id) {
		const shown = await world.exec('stat -c %s big');
		assert.ok(Number(shown.output) > 10 * MIB, JSON.stringify(shown));
	} else {
		assert.equal(ran.publish_rejected, true, JSON.stringify(ran));
		assert.equal((await world.call('file_read', { path: 'note' })).error?.kind, 'not_found');
		assert.match(JSON.stringify(ran), /No space left on device/);
	}
	/* by hand: the way out of a full disk */
	for (const { workspace_session_id } of (await world.adminJson('session list')).sessions)
		await world.admin('session', 'discard', world.id, workspace_session_id);
	for (const { reject_id } of (await world.adminJson('reject list')).rejects)
		await world.admin('reject', 'drop', world.id, reject_id);
	const freed = await world.exec('rm -f big');
	await world.tryAdmin('squash', world.id);
	await world.settled();
	await world.admin('gc', world.id);
	await assertSound(world, `after-${freed.status}`);
});

/** Fills what is left, outside the sandbox, so that only publishing meets it; gives room() back. */
async function fill(at, keepKiB) {
	const filler = join(at, 'filler');
	run('sync', '-f', at); // what is not yet allocated counts as free
	const { stdout } = spawnSync('df', ['-k', '--output=avail', at], { encoding: 'utf8' });
	const available = Number(stdout.trim().split('\n').at(-1));
	// the file's own extent blocks come out of the same room
	for (let size = available - keepKiB, tries = 0; tries < 64; tries++, size -= 4)
		if (spawnSync('fallocate', ['-l', `${Math.max(4, size)}KiB`, filler]).status === 0)
			return () => rm(filler, { force: true });
	return assert.fail(`no file of about ${available} KiB can be made in ${at}`);
}

test('what cannot be published for lack of space is kept, and published when there is room', { skip }, async (t) => {
	const { world, at } = await worldOn(t, 64 * MIB);
	const content = 'x'.repeat(200) + '\n';
	const text = content.repeat(2000);
	let refusals = 0;
	for (const keepKiB of [0, 8, 40, 450]) {
		const room = await fill(at, keepKiB);
		const path = `w${keepKiB}`;
		const written = await world.call('file_write', { path, content: text });
		const ran = await world.exec(`echo ${keepKiB} >c${keepKiB}; seq 20000 >d${keepKiB}`);
		await room();
		const what = `${keepKiB} KiB left: ${JSON.stringify(written)} ${JSON.stringify(ran)}`;
		if (written.error) {
			refusals++;
			assert.match(written.error.message, /No space left on device/, what);
			assert.equal(await world.text(path), null, what);
			assert.ok(!(await world.call('file_write', { path, content: text })).error, what);
		}
		const size = await world.exec(`cat ${path} | sha256sum | cut -d' ' -f1`);
		assert.equal(size.output.trim(), createHash('sha256').update(text).digest('hex'), what);
		if (ran.error || !ran.publish?.layer_id) {
			refusals++;
			assert.match(JSON.stringify(ran), /No space left on device|rejected/, what);
			await world.settled();
			for (const session of (await world.adminJson('session list')).sessions)
				await world.admin('session', 'publish', world.id, session.workspace_session_id);
			for (const { reject_id } of (await world.adminJson('reject list')).rejects)
				await world.admin('reject', 'retry', world.id, reject_id);
		}
		if (!ran.error) {
			assert.ok([`${keepKiB}\n`, ''].includes(await world.text(`c${keepKiB}`)), what);
		}
		await assertSound(world, `sound${keepKiB}`);
	}
	assert.ok(refusals > 0, 'the disk was never full');
	await world.crash();
	await assertSound(world, 'restarted');
});

test('without free inodes nothing is lost either', { skip }, async (t) => {
	const { world, at } = await worldOn(t, 64 * MIB, '-N', '1024');
	const hog = join(at, 'hog');
	await mkdir(hog);
	const left = () => {
		const { stdout } = spawnSync('df', ['--output=iavail', at], { encoding: 'utf8' });
		return Number(stdout.trim().split('\n').at(-1));
	};
	for (let n = 0; left() > 0; n++)
		for (let i = left(); i > 0; i--) await writeFile(join(hog, `${n}-${i}`), '').catch(() => {});
	const written = await world.call('file_write', { path: 'none', content: 'none\n' });
	const ran = await world.exec('echo more >more; echo rc=$?');
	assert.match(JSON.stringify(written), /No space left on device/);
	assert.match(JSON.stringify(ran), /No space left on device|rc=1/);
	await rm(hog, { recursive: true });
	assert.equal(await world.text('none'), null);
	await assertSound(world, 'again');
});

test('blocks that are reserved for root are not the sessions\'', { skip }, async (t) => {
	const { at, undo } = await smallDisk(64 * MIB);
	try {
		run('tune2fs', '-m', '40', spawnSync('findmnt', ['-n', '-o', 'SOURCE', at]).stdout.toString().trim());
		const world = await World.make(t, { files: { base: 'base\n' }, parent: at });
		t.after(undo);
		const ran = await world.exec('head -c 1G /dev/zero >big; : >after', { yield_time_ms: 50_000 });
		assert.match(ran.output, /No space left on device/, JSON.stringify(ran));
		const { stdout } = spawnSync('stat', ['-f', '-c', '%f %b %a', at], { encoding: 'utf8' });
		const [free, all, available] = stdout.trim().split(' ').map(Number);
		assert.ok(free > all * 0.3, `${free} of ${all} blocks are free, ${available} for everybody`);
	} catch (error) {
		await undo();
		throw error;
	}
});
