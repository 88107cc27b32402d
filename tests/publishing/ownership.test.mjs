// SPDX-License-Identifier: MIT
// Who wrote which line, asked through file_blame after work through commands and file tools.
import assert from 'node:assert/strict';
import test from 'node:test';
import { World } from '../faults/world.mjs';
import { ownerOf } from './pairs.mjs';

/** A command's owner. */
async function by(world, cmd) {
	const result = await world.exec(cmd);
	assert.ok(result.publish?.layer_id, `${cmd}: ${JSON.stringify(result)}`);
	return ownerOf(result);
}

async function write(world, path, content) {
	const result = await world.call('file_write', { path, content });
	assert.ok(!result.error, JSON.stringify(result));
}

const times = (n, owner) => Array(n).fill(owner);

test('B31: the last line without a newline, an appended line, and CRLF belong to who wrote them', async (t) => {
	const world = await World.make(t, { files: { base: 'base\n' } });
	await write(world, 'f', 'a\nb');
	const [a, second, ...none] = await world.owners('f');
	assert.deepEqual([second, none], [a, []]);
	const edit = await world.call('file_edit', { path: 'f', edits: [{ old_string: 'b', new_string: 'b\nc' }] });
	assert.ok(!edit.error);
	const edited = await world.owners('f');
	assert.deepEqual(edited.slice(0, 2), [a, a]);
	assert.notEqual(edited[2], a);
	const d = await by(world, "printf '\\nd' >>f");
	assert.deepEqual(await world.owners('f'), [a, a, edited[2], d]);
	await by(world, "sed -i 's/$/\\r/' f");
	assert.deepEqual(await world.owners('f'), [a, a, edited[2], d], 'a conversion is nobody\'s work');
	assert.equal((await world.call('file_read', { path: 'f' })).total_lines, 4);
	await by(world, "sed -i 's/\\r$//' f; echo >>f");
	assert.deepEqual(await world.owners('f'), [a, a, edited[2], d], 'nor is the final newline');
	await write(world, 'e', '');
	assert.deepEqual(await world.owners('e'), []);
});

test('B32: blame goes along with renames, and copies are their maker\'s', async (t) => {
	const world = await World.make(t, { files: { 'pkg/mod/a': 'one\ntwo\nthree\n', 'pkg/same': 'same\n' } });
	const ten = Array.from({ length: 10 }, (_, i) => `text of line ${i}\n`).join('');
	const a = await by(world, `printf %s '${ten}' >a.txt`);
	const b = await by(world, "sed -i '3s/$/ changed/' a.txt");
	const ab = [a, a, b, ...times(7, a)];
	await by(world, 'mv a.txt b.txt');
	assert.deepEqual(await world.owners('b.txt'), ab);
	const c = await by(world, 'cp b.txt c.txt');
	assert.deepEqual(await world.owners('c.txt'), times(10, c));
	assert.deepEqual(await world.owners('b.txt'), ab);
	const again = await by(world, 'seq 20 25 >a.txt');
	assert.deepEqual(await world.owners('a.txt'), times(6, again), 'the name has no past');

	const m = await by(world, "sed -i '2s/$/!/' pkg/mod/a");
	await by(world, 'mv pkg lib');
	assert.deepEqual(await world.owners('lib/mod/a'), ['original', m, 'original']);
	assert.deepEqual(await world.owners('lib/same'), ['original']);
	const n = await by(world, "mv lib/mod lib/new && sed -i '1s/$/?/' lib/new/a");
	assert.deepEqual(await world.owners('lib/new/a'), [n, m, 'original']);
	await by(world, 'mkdir deep && cp -r lib deep/ && rm -r lib');
	assert.deepEqual(await world.owners('deep/lib/new/a'), [n, m, 'original'], 'a move by copy and delete');
	for (const path of ['lib/new/a', 'pkg/mod/a', 'nosuch'])
		assert.equal((await world.call('file_blame', { path })).error.kind, 'not_found', path);
});

test('squash changes no blame', async (t) => {
	const world = await World.make(t, { files: { base: 'one\ntwo\n' } });
	await by(world, 'seq 5 >f; mkdir d; seq 3 >d/g');
	await by(world, "sed -i '2s/$/x/' f; sed -i '1s/$/x/' base");
	await by(world, 'mv d e; mv f e/f');
	await by(world, 'printf "a\\0b" >bin; rm e/g');
	await write(world, 'e/g', 'new\n');
	const paths = ['base', 'e/f', 'e/g', 'bin'];
	const blame = () => Promise.all(paths.map((path) => world.call('file_blame', { path })));
	const before = await blame();
	const { layer_count } = await world.adminJson('inspect');
	await world.admin('squash', world.id);
	assert.ok((await world.adminJson('inspect')).layer_count < layer_count);
	assert.deepEqual(await blame(), before);
	await world.crash();
	assert.deepEqual(await blame(), before);
	assert.equal(await world.damage(), '');
});
