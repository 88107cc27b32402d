// SPDX-License-Identifier: MIT
// A command exchanges names under the file tools' hands, as fast as it can, for some seconds: a
// directory and a file against links out of the session, a file against a FIFO. Whatever the tools
// answer, they stay inside, and they answer.
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { until } from '../support.mjs';
import { Arena, needs } from './arena.mjs';

const SECONDS = 5;
const SWAPS = ['d dlink', 'file flink', 'pipe fifo'];
const CALLS = [
	['file_read', 'd/f', {}],
	['file_read', 'file', {}],
	['file_read', 'pipe', {}],
	['file_write', 'd/written', { content: 'written\n' }],
	['file_write', 'file', { content: 'inside\n' }],
	['file_write', 'pipe', { content: 'inside\n' }],
	['file_edit', 'd/f', { edits: [{ old_string: 'inside', new_string: 'inside still' }] }],
	['file_edit', 'file', { edits: [{ old_string: 'inside', new_string: 'inside still' }] }],
];

/** Calls every tool again and again while the command runs; gives the answers by call. */
async function harass(arena, session, command) {
	const answers = CALLS.map(() => ({ done: [], refused: [] }));
	const end = Date.now() + SECONDS * 1000;
	while (Date.now() < end)
		await Promise.all(CALLS.map(async ([name, path, more], i) => {
			const answer = await arena.tool(name, { sandbox_id: session.sandbox_id,
				workspace_session_id: session.id, path, ...more });
			answers[i][answer.error ? 'refused' : 'done'].push(answer);
		}));
	await until(async () => (await session.output('pgrep -xc tool')) === '0', 'the end of the swaps');
	const { output } = await arena.tool('read_command_lines', {
		sandbox_id: session.sandbox_id, command_session_id: command.command_session_id,
	});
	assert.equal(output, 'swapped often\n'.repeat(SWAPS.length));
	return answers;
}

test('names exchanged under the file tools', { skip: needs('gcc') }, async (t) => {
	const arena = await Arena.make(t);
	const outside = join(arena.state.dir, 'outside');
	await mkdir(outside);
	await writeFile(join(outside, 'f'), 'SECRET inside\n');
	const session = await arena.session(await arena.sandbox('races'));
	await session.output(`mkdir d; echo inside | tee d/f >file; echo inside >pipe; mkfifo fifo; ` +
		`ln -s ${outside} dlink; ln -s ${outside}/f flink`);
	const command = await session.leave(SWAPS.map((pair) =>
		`/tmp/tool swap ${pair} ${SECONDS} & `).join('') + 'wait');
	const answers = await harass(arena, session, command);

	for (const [i, [name, path]] of CALLS.entries())
		await t.test(`${name} of ${path} stays inside`, () => {
			const { done, refused } = answers[i];
			assert.ok(done.length + refused.length > 0);
			for (const answer of done) assert.doesNotMatch(JSON.stringify(answer), /SECRET/);
			for (const { error } of refused) {
				assert.doesNotMatch(JSON.stringify(error), /SECRET/);
				assert.notEqual(error.kind, 'internal_error', error.message);
			}
		});

	await t.test('there was a race: both answers were given', () => {
		const reads = answers[0];
		assert.ok(reads.done.length > 0 && reads.refused.length > 0,
			`${reads.done.length} read, ${reads.refused.length} refused`);
	});

	await t.test('nothing outside was changed', async () => {
		assert.deepEqual(await readdir(outside), ['f']);
		assert.equal(await readFile(join(outside, 'f'), 'utf8'), 'SECRET inside\n');
	});
});
