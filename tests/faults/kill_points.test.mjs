// SPDX-License-Identifier: MIT
// kill -9 at each step of a commit: strace kills the worker or sandboxd when it enters its N-th
// system call that changes the disk or answers somebody. Afterwards sandboxd is killed too, started
// again, and every publication that was acknowledged must be there to the byte, none by halves, and
// none that a finished command made may be gone.
//
// SBX_FAULT_POINTS: how many N are tried for each process and kind of change (default 3); the rest
// are tried by hand with a large number.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import test from 'node:test';
import { missing, setting, spread, World } from './world.mjs';

const POINTS = setting('SBX_FAULT_POINTS', 3);
const CALLS = [
	'renameat,renameat2,rename,linkat,symlinkat,unlinkat,mkdirat,ftruncate,utimensat',
	'fsetxattr,fremovexattr,fchmod,fchown',
	'fsync,fdatasync,syncfs,sync_file_range,write,pwrite64,writev,sendmsg,sendto',
].join(',');
const skip = missing('strace');

const table = Array.from({ length: 40 }, (_, i) => `row ${i}\n`);
const files = { 'table.txt': table.join(''), 'old/a': 'a\n', 'old/b': 'b\n' };
const edited = (row, text) => table.map((line, i) => (i === row ? text : line)).join('');

/** Each kind of change: prepare() before the tracer comes, run() under it, then files as expected. */
const kinds = {
	'a command': {
		run: (world, n) =>
			world.exec(
				`mkdir new${n} && echo one >new${n}/one && echo two >new${n}/two && mv old moved${n} && ln -s one new${n}/link`,
			),
		before: (n) => ({ [`new${n}/one`]: null, [`new${n}/two`]: null, 'old/a': 'a\n', 'old/b': 'b\n' }),
		after: (n) => ({
			[`new${n}/one`]: 'one\n',
			[`new${n}/two`]: 'two\n',
			[`moved${n}/a`]: 'a\n',
			[`moved${n}/b`]: 'b\n',
			'old/a': null,
		}),
		/* sandboxd's end is the end of its commands, and this one may have got half way. */
		async stoppedMidway(world, n) {
			const [one, two, oldA, movedA] = await Promise.all(
				[`new${n}/one`, `new${n}/two`, 'old/a', `moved${n}/a`].map((path) => world.text(path)),
			);
			const written = (text, whole) => [null, '', whole].includes(text);
			assert.ok(written(one, 'one\n') && written(two, 'two\n'), `${one} ${two}`);
			assert.ok(one === 'one\n' || two === null, 'the second without the first');
			assert.deepEqual([oldA, movedA].filter((text) => text !== null), ['a\n'], 'moved once');
			return oldA === null;
		},
		undo: (world, n) => world.exec(`mv moved${n} old`),
	},
	'a merge': {
		async prepare(world, n) {
			const { workspace_session_id } = await world.adminJson('session create');
			await world.exec(`sed -i '31s/.*/mine ${n}/' table.txt; echo ${n} >side${n}`, {
				workspace_session_id,
			});
			await world.call('file_write', { path: 'table.txt', content: edited(5, `theirs ${n}\n`) });
			this.session = workspace_session_id;
		},
		async run(world) {
			const said = await world.tryAdmin('session', 'publish', world.id, this.session, '--json');
			const published = said.code === 0 && JSON.parse(said.stdout).publish;
			return { publish: published || undefined, said: said.stderr + said.stdout };
		},
		before: (n) => ({ [`side${n}`]: null, 'table.txt': edited(5, `theirs ${n}\n`) }),
		after: (n) => ({
			[`side${n}`]: `${n}\n`,
			'table.txt': edited(5, `theirs ${n}\n`).replace('row 30\n', `mine ${n}\n`),
		}),
		undo: (world) => world.call('file_write', { path: 'table.txt', content: table.join('') }),
	},
	file_write: {
		async run(world, n) {
			const result = await world.call('file_write', { path: `dir${n}/w`, content: `${n}\nx\n` });
			return { publish: result.error ? undefined : result, said: JSON.stringify(result) };
		},
		before: (n) => ({ [`dir${n}/w`]: null }),
		after: (n) => ({ [`dir${n}/w`]: `${n}\nx\n` }),
		may_be_gone: true, // the caller still has the text, and was told that it is not written
	},
};

/** sandboxd goes on after its answer: it prepares the next session and buries the last. */
async function someTimeFor(probe) {
	for (let i = 0; i < 30 && !probe(); i++) await new Promise((next) => setTimeout(next, 10));
}

async function matches(world, expected) {
	for (const [path, text] of Object.entries(expected))
		if ((await world.text(path)) !== text) return `${path} is not ${JSON.stringify(text)}`;
	return true;
}

/** Work that is kept outside the head comes into it by what a person would do. */
async function bringIn(world) {
	for (const session of (await world.adminJson('session list')).sessions)
		await world.adminJson('session publish', session.workspace_session_id);
	for (const reject of (await world.adminJson('reject list')).rejects)
		await world.adminJson('reject retry', reject.reject_id);
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

/** One change with one process killed at its n-th call. False: it made fewer calls. */
async function point(world, kind, comm, n) {
	await world.start();
	await kind.prepare?.(world, n);
	await world.client();
	const pids = await world.pids(comm);
	const untrace = await world.trace(pids, '-e', `trace=${CALLS}`, '-e', `inject=${CALLS}:signal=KILL:when=${n}`);
	const result = await kind.run(world, n);
	if (comm === 'sandboxd') await someTimeFor(() => !existsSync(`/proc/${pids[0]}`));
	const log = await untrace();
	const killed = / = \?\s*$|killed by SIGKILL/m.test(log); // a call without an end
	const last = log.trim().split('\n').slice(-2).join(' | ');
	await world.crash();
	const what = `killed ${comm} at call ${n} (${last}), answer ${JSON.stringify(result).slice(0, 300)}`;
	const acknowledged = Boolean(result.publish?.layer_id ?? result.publish?.type);
	if (!killed) assert.ok(acknowledged, `nothing was killed, yet ${what}`);
	await check(world, kind, comm, n, acknowledged, what);
	const there = (await matches(world, kind.after(n))) === true;
	if (there) await checkOwners(world, kind, n);
	if (there) await kind.undo?.(world, n);
	return killed;
}

/** How many calls the processes make for one undisturbed change. */
async function countCalls(world, kind, comm) {
	await world.start();
	await kind.prepare?.(world, 0);
	await world.client();
	const untrace = await world.trace(await world.pids(comm), '-e', `trace=${CALLS}`);
	await kind.run(world, 0);
	if (comm === 'sandboxd') await someTimeFor(() => false);
	const n = (await untrace()).split('\n').filter((line) => /^([0-9]+ +)?[a-z_0-9]+\(/.test(line)).length;
	await kind.undo?.(world, 0);
	return n;
}

for (const [name, kind] of Object.entries(kinds))
	for (const comm of ['sbx-worker', 'sandboxd'])
		test(`${name} survives ${comm} being killed at any step`, { skip }, async (t) => {
			const world = await World.make(t, { files });
			const last = await countCalls(world, kind, comm);
			assert.ok(last > 3, `${comm} makes ${last} calls`);
			let killed = 0;
			for (const n of spread(last, POINTS)) killed += await point(world, kind, comm, n);
			assert.ok(killed > 0, 'nothing was ever killed');
			t.diagnostic(`${killed} of ${last} points`);
		});
