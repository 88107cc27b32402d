// SPDX-License-Identifier: MIT
// The kinds of changes that the fault tests make, each with what the files are before and after it.
import assert from 'node:assert/strict';

const table = Array.from({ length: 40 }, (_, i) => `row ${i}\n`);
export const files = { 'table.txt': table.join(''), 'old/a': 'a\n', 'old/b': 'b\n' };
const edited = (row, text) => table.map((line, i) => (i === row ? text : line)).join('');

/**
 * prepare() comes before the fault, run() under it; it gives {publish} if it was acknowledged. before()
 * and after() are files: their contents, null for none.
 */
export const kinds = {
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

/** true, or which file is another. */
export async function matches(world, expected) {
	for (const [path, text] of Object.entries(expected))
		if ((await world.text(path)) !== text) return `${path} is not ${JSON.stringify(text)}`;
	return true;
}

/** Work that is kept outside the head comes into it by what a person would do. */
export async function bringIn(world) {
	for (const session of (await world.adminJson('session list')).sessions)
		await world.adminJson('session publish', session.workspace_session_id);
	for (const reject of (await world.adminJson('reject list')).rejects)
		await world.adminJson('reject retry', reject.reject_id);
}
