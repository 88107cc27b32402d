// SPDX-License-Identifier: MIT
// Several agents on one base: what lands, what is refused, and that nothing is lost in silence.
import assert from 'node:assert/strict';
import test from 'node:test';
import { World } from '../faults/world.mjs';
import { assertPublished, begin, finish, ownerOf, refusal, sideBySide } from './pairs.mjs';

const numbered = (n) => Array.from({ length: n }, (_, i) => `line ${i + 1}\n`).join('');

test('B22: the base is frozen while a command runs', async (t) => {
	const world = await World.make(t, { files: { f: 'v1\n', 'old/a': 'a\n' } });
	const a = await begin(world, 'cat f', 'cat f; cat g 2>&1; ls -1');
	assert.ok(!(await world.call('file_write', { path: 'f', content: 'v2\n' })).error);
	await world.exec('echo g >g; rm -rf old');
	const { output } = await finish(world, a);
	const [first, , second, missing, ...names] = output.trim().split('\n');
	assert.deepEqual([first, second, names.join(' ')], ['v1', 'v1', 'f old'], output);
	assert.match(missing, /g: No such file/);
	assert.equal((await world.exec('cat f g; ls -1')).output, 'v2\ng\nf\ng\n');
});

test('B22: a large file that is rewritten meanwhile is one version of it, whole', async (t) => {
	const world = await World.make(t, { files: { f: 'f\n' } });
	const write = (c) => world.exec(`head -c 20000000 /dev/zero | tr '\\0' ${c} >big; sha256sum <big`);
	const sums = [(await write('a')).output];
	const reader = begin(world, 'for i in 1 2 3 4 5 6; do sha256sum <big; done');
	for (const c of ['b', 'c']) sums.push((await write(c)).output);
	const seen = (await reader).seen.split('\n').filter((line) => line.endsWith(' -'));
	assert.equal(seen.length, 6);
	assert.deepEqual([...new Set(seen)].length, 1, 'one session, one version');
	assert.ok(sums.includes(`${seen[0]}\n`), seen[0]);
	await finish(world, await reader);
});

test('B23: parallel edits of different places in one file all land, each with its author', async (t) => {
	const world = await World.make(t, { files: { f: numbered(60) } });
	const other = await world.anotherClient();
	const edit = (client, line) =>
		client.call('file_edit', { path: 'f', edits: [{ old_string: `line ${line}\n`, new_string: `edited ${line}\n` }] });
	const client = await world.client();
	const lines = [5, 15, 25, 35, 45, 55];
	const results = await Promise.all([
		...lines.map((line) => edit(client, line)),
		...lines.map((line) => edit(line % 2 ? other : client, line + 2)),
		world.exec("sed -i '30s/.*/from a command/' f"),
		edit(client, 32),
	]);
	for (const result of results) assert.ok(!result.error, JSON.stringify(result));
	const edited = [...lines, ...lines.map((line) => line + 2), 32];
	const expected = edited.reduce((text, line) => text.replace(`line ${line}\n`, `edited ${line}\n`), numbered(60));
	assert.equal(await world.text('f'), expected.replace('line 30\n', 'from a command\n'));
	const owners = await world.owners('f');
	assert.equal(owners[29], ownerOf(results[12]));
	const operations = edited.map((line) => owners[line - 1]);
	assert.equal(new Set(operations).size, edited.length, 'an operation each');
	for (const owner of operations) assert.match(owner, /^operation:/);
	owners.forEach((owner, i) => edited.includes(i + 1) || i === 29 || assert.equal(owner, 'original', `line ${i + 1}`));
});

test('B23: parallel edits of one line: what says success is there, the others got an error', async (t) => {
	const world = await World.make(t, { files: { f: 'start\n' } });
	const results = await Promise.all(['a', 'b', 'c', 'd'].map((name) =>
		world.call('file_edit', { path: 'f', edits: [{ old_string: 'start', new_string: `by ${name}` }] })));
	const done = results.filter(({ error }) => !error);
	assert.equal(done.length, 1, JSON.stringify(results));
	assert.equal(await world.text('f'), `by ${'abcd'[results.indexOf(done[0])]}\n`);
});

/* what each does, then what the second is told when a ends first, and when b does; [] is clean */
const deletions = [
	['delete against append', 'rm x', 'echo more >>x', ['x modify_delete'], ['x delete_modify']],
	['delete against chmod', 'rm x', 'chmod 600 x', ['x modify_delete'], ['x delete_modify']],
	['both delete', 'rm x', 'rm x; echo n >n', [], []],
	['delete against touch', 'rm x', 'touch x; echo n >n', [], []],
	['delete and make again against edit', 'rm x; echo other >x', 'echo more >>x', ['x content'], ['x content']],
	['delete and make a directory against edit', 'rm x; mkdir x; echo y >x/y', 'echo more >>x', ['x type'], ['x type']],
	['delete a directory against a new file in it', 'rm -r dir', 'echo n >dir/new', ['dir/new modify_delete'], ['dir/new delete_modify']],
	['delete a directory against an edit in it', 'rm -r dir', 'echo n >>dir/a', ['dir/a modify_delete'], ['dir/a delete_modify']],
	['rename against edit', 'mv x y', 'echo more >>x', ['x modify_delete'], ['x delete_modify']],
];

test('B25: a deletion and a change of one path never pass each other in silence', async (t) => {
	const files = { x: 'x\n', 'dir/a': 'a\n', 'dir/b': 'b\n', rest: '' };
	for (const [name, a, b, ...told] of deletions) {
		for (const [turn, conflicts] of told.entries()) {
			await t.test(`${name}, ${turn ? 'the change' : 'the deletion'} first`, async (s) => {
				const world = await World.make(s, { files });
				const see = async () => (await world.exec('find . -type f | sort | xargs tail -v -n +1')).output;
				const [first, second] = await sideBySide(world, ...(turn ? [b, a] : [a, b]));
				assertPublished(first);
				if (!conflicts.length) {
					assertPublished(second);
					assert.equal(await world.text('x'), null);
					return;
				}
				assert.deepEqual(refusal(second), conflicts);
				const after = await see();
				await world.crash();
				assert.equal(await see(), after, 'nothing reappears after a restart');
				await world.admin('reject', 'drop', world.id, second.reject_id);
				assert.equal(await see(), after, 'nor with the reject gone');
			});
		}
	}
});

const ten = Array.from({ length: 9 }, (_, i) => `l${i + 1}`);
const with_ = (...changes) => changes.reduce((lines, [i, text]) => lines.with(i - 1, text), ten);
const cases = [
	['edits away from a last line without newline', ten.join('\n'), 'sed -i s/l1/A/ f', 'sed -i s/l5/B/ f', with_([1, 'A'], [5, 'B']).join('\n')],
	['one adds the final newline', ten.join('\n'), 'sed -i s/l1/A/ f', 'echo >>f', `${with_([1, 'A']).join('\n')}\n`],
	['one takes the final newline away', `${ten.join('\n')}\n`, 'sed -i s/l1/A/ f', 'truncate -s -1 f', with_([1, 'A']).join('\n')],
	['one appends to a last line without newline', ten.join('\n'), "printf '\\nl10' >>f", 'sed -i s/l1/B/ f', [...with_([1, 'B']), 'l10'].join('\n')],
	['both edit the last line', ten.join('\n'), 'sed -i s/l9/A/ f', 'sed -i s/l9/B/ f', null],
	['both append to a last line without newline', ten.join('\n'), "printf '\\nA' >>f", "printf '\\nB' >>f", null],
	['one appends, one takes the final newline away', `${ten.join('\n')}\n`, 'echo A >>f', 'truncate -s -1 f', null],
	...[0, 1, 2, 3].map((n) => [`${n} blank lines at the end`, `${ten.join('\n')}\n${'\n'.repeat(n)}`, 'sed -i s/l1/A/ f', 'sed -i s/l9/B/ f',
		`${with_([1, 'A'], [9, 'B']).join('\n')}\n${'\n'.repeat(n)}`]),
	['CRLF stays CRLF', ten.join('\r\n'), 'sed -i s/l1/A/ f', 'sed -i s/l9/B/ f', with_([1, 'A'], [9, 'B']).join('\r\n')],
];

test('B27: merges near the end of the file keep every byte', async (t) => {
	for (const [name, base, a, b, expected] of cases) {
		await t.test(name, async (s) => {
			for (const turned of [false, true]) {
				const world = await World.make(s, { files: { f: base } });
				const [first, second] = await sideBySide(world, ...(turned ? [b, a] : [a, b]));
				assertPublished(first);
				if (expected === null) {
					assert.deepEqual(refusal(second), ['f content']);
					continue;
				}
				assertPublished(second);
				assert.equal(await world.text('f'), expected, turned ? 'the other one first' : 'the first one first');
			}
		});
	}
});

test('B57: a merge keeps the bytes of a file that is not valid UTF-8', async (t) => {
	const base = Buffer.concat([Buffer.from('x = 1\n# caf'), Buffer.from([0xe9, 0x0a, 0xed, 0xa0, 0x80, 0x0a]), Buffer.from('a\nb\nc\n')]);
	const world = await World.make(t, { files: { f: base } });
	const results = await sideBySide(world, "sed -i 's/x = 1/x = 2/' f", "sed -i 's/^c$/C/' f");
	results.forEach(assertPublished);
	assert.equal(results[1].publish.merged, 1);
	const { output } = await world.exec('od -An -v -tx1 f | tr -d " \\n"');
	const expected = Buffer.from(base);
	expected[4] = '2'.charCodeAt(0);
	expected[expected.length - 2] = 'C'.charCodeAt(0);
	assert.equal(output.trim(), expected.toString('hex'));
});

test('B57: two changes of a UTF-16 file are a conflict, never half of each', async (t) => {
	const world = await World.make(t, { files: { f: Buffer.from('\ufeffone\ntwo\nthree\n', 'utf16le') } });
	const results = await sideBySide(world, "printf 'a\\0\\n\\0' >>f", "printf 'b\\0' | dd of=f bs=1 seek=2 conv=notrunc status=none");
	assertPublished(results[0]);
	assert.deepEqual(refusal(results[1]), ['f binary']);
	assert.equal((await world.exec('tail -c 4 f | od -An -tx1')).output.trim(), '61 00 0a 00');
});

test('one directory made by two, and the same work done twice, are no conflicts', async (t) => {
	const world = await World.make(t, { files: { f: 'f\n', gone: 'g\n' } });
	const both = 'mkdir -p out/logs/2025 && echo same >out/same && echo same >>f && rm gone';
	const results = await sideBySide(world, `${both} && echo a >out/logs/2025/a`, `${both} && echo b >out/logs/2025/b`);
	results.forEach(assertPublished);
	assert.equal((await world.exec('find . -type f | sort | xargs cat; stat -c %a out/logs')).output, 'f\nsame\na\nb\nsame\n755\n');
	assert.deepEqual(await world.owners('f'), ['original', ownerOf(results[0])], 'who came first has written it');
});
