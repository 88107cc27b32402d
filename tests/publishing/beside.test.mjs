// SPDX-License-Identifier: MIT
// A publication of many files delays nobody: small ones land and reads are answered while it is
// under way, and it lands on top of all of them.
//
// SBX_SLOW_FILES: how many files it has (default 40000; 100000 by hand).
import assert from 'node:assert/strict';
import test from 'node:test';
import { setting, until, World } from '../faults/world.mjs';

const FILES = setting('SBX_SLOW_FILES', 40_000);
const PER_DIR = 500;
const ROUNDS_MIN = 2; // of a write, a command, a read and a blame, each answered before the slow one

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

/** One of everything small; gives how long each took. */
async function round(world, n) {
	const took = {};
	const timed = async (what, run) => {
		const begun = performance.now();
		const result = await run();
		took[what] = performance.now() - begun;
		return result;
	};
	const write = await timed('file_write', () => world.call('file_write', { path: `w${n}`, content: `${n}\n` }));
	assert.equal(write.type, 'create', JSON.stringify(write));
	const ran = await timed('exec_command', () => world.exec(`echo ${n} >>log`));
	assert.ok(ran.publish?.layer_id, JSON.stringify(ran));
	const read = await timed('file_read', () => world.call('file_read', { path: 'log' }));
	assert.ok(read.content.endsWith(`${n}\n`), JSON.stringify(read));
	const blame = await timed('file_blame', () => world.call('file_blame', { path: 'log' }));
	assert.equal(blame.ranges.at(-1).owner, `workspace_session:${ran.workspace_session_id}`);
	return took;
}

function summary(rounds) {
	return ['file_write', 'exec_command', 'file_read', 'file_blame']
		.map((what) => `${what} ${median(rounds.map((took) => took[what])).toFixed(1)}`)
		.join(', ');
}

test(`a publication of ${FILES} files delays neither small ones nor reads`, async (t) => {
	const world = await World.make(t, { files: { log: '' } });
	const alone = [];
	for (let i = 0; i < 5; i++) alone.push(await round(world, i));
	const slow = await world.call('exec_command', {
		cmd: `read -r go; mkdir big; for d in $(seq ${FILES / PER_DIR}); do mkdir big/$d; (cd big/$d; touch $(seq ${PER_DIR})); done; echo s >big/1/1`,
		yield_time_ms: 0,
	});
	let answer;
	const { command_session_id } = slow;
	const answered = (async () => {
		let state = await world.call('write_command_stdin', { command_session_id, stdin: 'go\n', yield_time_ms: 50_000 });
		while (state.status === 'running')
			state = await world.call('write_command_stdin', { command_session_id, stdin: '', yield_time_ms: 50_000 });
		answer = state;
	})();
	await until(async () => (await world.adminJson('inspect')).publications_pending > 0 || answer, 'the slow one is published');
	const beside = [];
	while (!answer) {
		const took = await round(world, 100 + beside.length);
		if (!answer) beside.push(took);
	}
	await answered;
	t.diagnostic(`medians in ms, alone: ${summary(alone)}`);
	t.diagnostic(`beside it, ${beside.length} rounds: ${beside.length ? summary(beside) : 'none'}`);
	assert.ok(answer.publish?.layer_id, JSON.stringify(answer));
	assert.ok(beside.length >= ROUNDS_MIN, `${beside.length} rounds were over before it`);
	const seen = await world.exec('find big -type f | wc -l; cat big/1/1; wc -l <log; ls w* | wc -l');
	const rounds = alone.length + beside.length;
	assert.deepEqual(seen.output.split('\n').slice(0, 2), [`${FILES}`, 's']);
	assert.ok(seen.output.split('\n').slice(2, 4).every((n) => Number(n) >= rounds), seen.output);
});
