// SPDX-License-Identifier: MIT
// The kinds of changes that the fault tests make, each with what the files are before and after it.
import assert from 'node:assert/strict';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';

const table = Array.from({ length: 40 }, (_, i) => `row ${i}\n`);
export const files = { 'table.txt': table.join(''), 'old/a': 'a\n', 'old/b': 'b\n' };
const edited = (row, text) => table.map((line, i) => (i === row ? text : line)).join('');

/** A command that was refused since the head has another row 30; gives the id of its reject. */
async function makeReject(world, n) {
	const loser = await world.call('exec_command', {
		cmd: `read -r go && sed -i '31s/.*/mine ${n}/' table.txt && echo ${n} >side${n}`,
		yield_time_ms: 0,
	});
	await world.call('file_write', { path: 'table.txt', content: edited(30, `theirs ${n}\n`) });
	let state = await world.call('write_command_stdin', {
		command_session_id: loser.command_session_id,
		stdin: 'go\n',
		yield_time_ms: 50_000,
	});
	assert.ok(state.reject_id, JSON.stringify(state));
	return state.reject_id;
}

async function retry(world, rejectId) {
	const said = await world.tryAdmin('reject', 'retry', world.id, rejectId, '--json');
	const publish = said.code === 0 && JSON.parse(said.stdout).publish;
	return { publish: publish || undefined, said: said.stderr + said.stdout };
}

/** The parts of a retry, landing or refused: both merge with the head's row 5 in the end. */
const retried = {
	before: (n) => ({ [`side${n}`]: null, 'table.txt': edited(5, `theirs ${n}\n`) }),
	after: (n) => ({
		[`side${n}`]: `${n}\n`,
		'table.txt': edited(5, `theirs ${n}\n`).replace('row 30\n', `mine ${n}\n`),
	}),
	lift: (world, n) => world.call('file_write', { path: 'table.txt', content: edited(5, `theirs ${n}\n`) }),
	undo: (world) => world.call('file_write', { path: 'table.txt', content: table.join('') }),
};

/**
 * prepare() comes before the fault, run() under it; it gives {publish} if it was acknowledged. before()
 * and after() are files: their contents, null for none. lift() takes away what a refusal is for;
 * refused: run() never publishes anything.
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
	'a retry': {
		...retried,
		async prepare(world, n) {
			this.reject = await makeReject(world, n);
			await retried.lift(world, n);
		},
		run(world) {
			return retry(world, this.reject);
		},
	},
	'a refused retry': {
		...retried,
		refused: true,
		async prepare(world, n) {
			this.reject = await makeReject(world, n);
		},
		run(world) {
			return retry(world, this.reject);
		},
		before: (n) => ({ [`side${n}`]: null, 'table.txt': edited(30, `theirs ${n}\n`) }),
		async undo(world) {
			for (const { reject_id } of (await world.adminJson('reject list')).rejects)
				await world.adminJson('reject drop', reject_id);
			await retried.undo(world);
		},
		/** One reject, the one that there was. */
		async kept(world) {
			const { rejects } = await world.adminJson('reject list');
			assert.deepEqual(rejects.map(({ reject_id }) => reject_id), [this.reject]);
		},
	},
	'a squash': {
		async prepare(world, n) {
			for (const path of ['q/a', 'q/b', 'q/a', `r${n}`])
				await world.call('file_write', { path, content: `${n} in ${path}\n` });
			await world.exec('rm q/b; mkdir -p q/c; ln -s a q/link; chmod 700 q');
		},
		async run(world) {
			const said = await world.tryAdmin('squash', world.id, '--json');
			return { publish: said.code ? undefined : { type: 'squash' }, said: said.stderr + said.stdout };
		},
		before: (n) => ({ 'q/a': `${n} in q/a\n`, 'q/b': null, [`r${n}`]: `${n} in r${n}\n` }),
		after: (n) => ({ 'q/a': `${n} in q/a\n`, 'q/b': null, [`r${n}`]: `${n} in r${n}\n` }),
	},
	'an export': {
		async prepare(world, n) {
			await world.call('file_write', { path: 'x/y', content: `${n}\n` });
			await world.exec('ln -sf y x/link; ln -f x/y x/same');
			this.into = join(world.dir, `export${n}`);
			// a worker that takes long jobs is there before it is watched
			await world.admin('export', world.id, this.into);
			await rm(this.into, { recursive: true });
		},
		async run(world, n) {
			const said = await world.tryAdmin('export', world.id, this.into);
			if (said.code === 0)
				for (const name of ['y', 'same', 'link'])
					assert.equal(await readFile(join(this.into, 'x', name), 'utf8'), `${n}\n`, name);
			await rm(this.into, { recursive: true, force: true });
			return { publish: said.code ? undefined : { type: 'export' }, said: said.stderr + said.stdout };
		},
		before: (n) => ({ 'x/y': `${n}\n` }),
		after: (n) => ({ 'x/y': `${n}\n` }),
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
		if (session.kind === 'managed') // an automatic one that is still listed goes by itself
			await world.adminJson('session publish', session.workspace_session_id);
	for (const reject of (await world.adminJson('reject list')).rejects)
		await world.adminJson('reject retry', reject.reject_id);
}
