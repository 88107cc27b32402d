// SPDX-License-Identifier: MIT
// A small ext4 file system in an image, on a loop device.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { missing, until } from './world.mjs';

export function run(...command) {
	const { status, stderr, error } = spawnSync(command[0], command.slice(1), { encoding: 'utf8' });
	assert.equal(status, 0, `${command.join(' ')}: ${stderr ?? error}`);
}

/** Why no disk can be made here, for a test to be skipped by name; else false. */
export function cannotMount() {
	const programs = missing('mkfs.ext4', 'mount', 'umount', 'fallocate');
	if (programs) return programs;
	if (process.getuid() !== 0) return 'mounting needs root';
	const loop = spawnSync('losetup', ['-f'], { encoding: 'utf8' });
	return loop.status === 0 ? false : `no loop device: ${loop.stderr}`;
}
/** A directory on a small ext4, and what takes it down again. */
export async function smallDisk(bytes, ...mkfsOptions) {
	const dir = await mkdtemp(join(tmpdir(), 'sbx-disk-'));
	const image = join(dir, 'image');
	const at = join(dir, 'at');
	await writeFile(image, '');
	await truncate(image, bytes);
	await mkdir(at);
	run('mkfs.ext4', '-q', '-m', '0', ...mkfsOptions, image);
	run('mount', '-o', 'loop,commit=300', image, at); // nothing is written before it has to be
	const undo = async () => {
		await unmount(at);
		await rm(dir, { recursive: true, force: true });
	};
	return { at, image, undo };
}

/** The kernel ends namespaces a moment after their processes: until then the disk is busy. */
export async function unmount(at) {
	await until(() => spawnSync('umount', [at]).status === 0, 'the disk is free', 20_000).catch(() =>
		spawnSync('umount', ['-l', at]),
	);
}
