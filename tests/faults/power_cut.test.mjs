// SPDX-License-Identifier: MIT
// A power cut right after an acknowledged publication. The store is on an ext4 in an image on a
// loop device; while its daemon stands still, the image is copied. The copy holds what the file
// system has given to its disk until then and nothing that only memory has: it is the disk after a
// power cut, except that the disk itself keeps no writes back (a loop device without a cache).
// Every publication acknowledged before must be in it to the byte.
//
// SBX_POWER_CUTS: how many (default 3).
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { cannotMount, run, smallDisk, unmount } from './disk.mjs';
import { setting, World } from './world.mjs';

const CUTS = setting('SBX_POWER_CUTS', 3);
const skip = cannotMount();

/** Copies the disk as it is now and looks at the copy through a world of its own. */
async function cut(world, disk, look) {
	const copy = join(world.dir, 'copy');
	const at = join(world.dir, 'at');
	const [daemon] = await world.pids('sandboxd');
	await mkdir(at, { recursive: true });
	process.kill(daemon, 'SIGSTOP');
	const unsynced = `unsynced-${(world.nCuts = (world.nCuts ?? 0) + 1)}`;
	await writeFile(join(disk.at, unsynced), 'x'); // what shows that the cut is one
	await copyFile(disk.image, copy);
	process.kill(daemon, 'SIGCONT');
	run('mount', '-o', 'loop', copy, at);
	const after = await world.elsewhere(join(at, 'state'));
	try {
		assert.ok(!existsSync(join(at, unsynced)), 'the copy has what was not synced');
		await look(after);
	} finally {
		await after.remove();
		await unmount(at);
		await rm(copy, { force: true });
	}
}

test('what was acknowledged survives a power cut', { skip }, async (t) => {
	const disk = await smallDisk(48 << 20);
	const world = await World.make(t, { files: { base: 'base\n' }, parent: disk.at }).catch(async (error) => {
		await disk.undo();
		throw error;
	});
	t.after(disk.undo); // hooks run in order: after the world's own
	const expected = { base: 'base\n' };
	for (let i = 0; i < CUTS; i++) {
		const ran = await world.exec(`mkdir d${i} && seq 1000 >d${i}/seq && echo ${i} >c${i}`);
		assert.ok(ran.publish?.layer_id, JSON.stringify(ran));
		expected[`d${i}/seq`] = Array.from({ length: 1000 }, (_, n) => `${n + 1}\n`).join('');
		expected[`c${i}`] = `${i}\n`;
		const written = await world.call('file_write', { path: `w${i}/a`, content: `${i}\n` });
		assert.ok(!written.error, JSON.stringify(written));
		expected[`w${i}/a`] = `${i}\n`;
		if (i % 2) {
			/* many files go another way to the disk than few */
			const many = await world.exec(`mkdir m${i} && for n in $(seq 60); do echo $n >m${i}/$n; done`);
			assert.ok(many.publish?.layer_id, JSON.stringify(many));
			for (let n = 1; n <= 60; n++) expected[`m${i}/${n}`] = `${n}\n`;
		}
		await cut(world, disk, async (after) => {
			for (const [path, text] of Object.entries(expected))
				assert.equal(await after.text(path), text, `${path} after cut ${i}`);
			assert.equal(await after.damage(), '', `cut ${i}`);
		});
	}
});
