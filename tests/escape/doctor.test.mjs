// SPDX-License-Identifier: MIT
// What "sbx-admin doctor" says of the walls: all that docs/security.md has, and for each whether it
// stands here, and why not.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { here, serverPath, State } from '../support.mjs';

const source = process.env.SBX_SOURCE_DIR ?? join(here, '../..');
const adminPath = join(dirname(serverPath), 'sbx-admin');

const documented = () => readFileSync(join(source, 'docs/security.md'), 'utf8')
	.split(/^## /m).find((part) => part.startsWith('Walls\n'))
	.match(/^### .*$/gm).map((line) => line.slice(4));

/** Sandboxes run without; those that ask for one of these do not start without it. */
const depends = ['Limits', 'Network: bridge'];

function doctor(state, ...before) {
	const command = [...before, adminPath, 'doctor', '--json'];
	const { status, stdout, stderr } = spawnSync(command[0], command.slice(1),
		{ env: state.env, encoding: 'utf8' });
	assert.equal(status, 0, stderr);
	return JSON.parse(stdout);
}

test('each wall of the documentation is listed, in its order, and stands where sandboxes run', async (t) => {
	const report = doctor(await State.make(t));
	assert.deepEqual(report.walls.map(({ wall }) => wall), documented());
	assert.equal(report.usable, true);
	for (const wall of report.walls) {
		assert.ok(wall.why && wall.stops, JSON.stringify(wall));
		if (!depends.includes(wall.wall)) assert.equal(wall.in_force, true, JSON.stringify(wall));
	}
});

const noUnshare = spawnSync('unshare', ['-m', 'true']).status !== 0 && 'missing on this host: unshare';

test('a wall that this host cannot give is told, with the reason and what follows', { skip: noUnshare }, async (t) => {
	const report = doctor(await State.make(t), 'unshare', '-m', 'sh', '-c',
		'umount -R -l /sys/fs/cgroup && exec "$@"', 'sh');
	const limits = report.walls.find(({ wall }) => wall === 'Limits');
	assert.equal(limits.in_force, false);
	assert.match(limits.why, /limits of memory, processes and CPU: .*no cgroup.*missing limit does not start/);
	assert.ok(report.walls.every(({ wall, in_force }) => in_force || depends.includes(wall)));
});

test('people see it as a table', async (t) => {
	const state = await State.make(t);
	assert.match(await state.admin('doctor'), /\nWALL +IN FORCE +STOPS +WHY\nIds +yes /);
});
