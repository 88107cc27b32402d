// SPDX-License-Identifier: MIT
// What could not begin leaves nothing behind: sessions and commands whose directories could not be
// made or whose slot was refused. And what a session finds of the workspace root is all there.
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { missing, until, World } from './world.mjs';

const skip = missing('strace');

/** Runs with a call of sandboxd failing at its n-th time, again and again. */
async function failing(world, call, n, run) {
	const pid = await world.start();
	const untrace = await world.trace([pid], '-e', `trace=${call}`, '-e', `inject=${call}:error=ENOSPC:when=${n}`);
	await run();
	assert.match(await untrace(), /INJECTED/, `${call} ${n} was never made`);
}

test('a session that could not be made leaves no directory', { skip }, async (t) => {
	const world = await World.make(t);
	await world.exec('true');
	const sessions = async () => {
		const { sessions: listed } = await world.adminJson('session list');
		const known = listed.map((session) => session.workspace_session_id);
		return (await readdir(join(world.home, 'sessions'))).filter((name) => !known.includes(name)).length;
	};
	const standby = await sessions();
	for (const n of [1, 2, 3])
		await failing(world, 'mkdirat', n, async () => {
			const { code, stdout, stderr } = await world.tryAdmin('session', 'create', world.id);
			assert.equal(code, 1, stdout);
			assert.match(stderr + stdout, /No space left on device/);
		});
	await until(async () => (await sessions()) <= standby, 'no directory is left');
	await world.exec('true');
});

test('a command that could not be started leaves no directory and no place in the list', { skip }, async (t) => {
	const world = await World.make(t);
	const { workspace_session_id } = await world.adminJson('session create');
	await world.exec('true', { workspace_session_id });
	const commands = async () => (await readdir(join(world.home, 'commands'))).length;
	const before = await commands();
	let refused = 0;
	for (const n of [1, 2])
		await failing(world, 'openat', n, async () => {
			const ran = await world.exec('echo ran', { workspace_session_id });
			refused += Boolean(ran.error);
			if (ran.error) assert.match(ran.error.message, /No space left on device/);
		});
	assert.ok(refused > 0, 'no command was refused');
	await until(async () => (await commands()) === before + 2 - refused, 'no directory is left');
	assert.equal((await world.adminJson('command list')).commands.length, before + 2 - refused);
	assert.equal((await world.exec('echo ran', { workspace_session_id })).output, 'ran\n');
});

test('the access list of the workspace root is that of the last publication', async (t) => {
	const acl = '0sAgAAAAEABwD/////AgAHAAUAAAAEAAUA/////xAABwD/////IAAFAP////8='; // user 5: rwx
	const world = await World.make(t, { files: { f: 'f\n' } });
	const look = 'getfattr -d -m - -e base64 --absolute-names . | grep -E "posix|user" | sort; stat -c %a .';
	if ((await world.exec('command -v setfattr')).exit_code) {
		t.skip('setfattr is not installed');
		return;
	}
	const set = await world.exec(
		`setfattr -n system.posix_acl_access -v ${acl} . && setfattr -n user.mine -v 1 . && ${look}`,
	);
	assert.match(set.output, /posix_acl_access/, JSON.stringify(set));
	assert.ok(set.publish?.layer_id, JSON.stringify(set));
	const next = await world.exec(`${look}; echo g >g`);
	assert.equal(next.output, set.output);
	assert.deepEqual([next.publish.added, next.publish.modified], [1, 0], JSON.stringify(next.publish));
	assert.equal((await world.exec(look)).output, set.output, 'what others published kept it');
	assert.equal(await world.damage(), '');
});
