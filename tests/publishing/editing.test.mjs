// SPDX-License-Identifier: MIT
// Edits that leave every byte alone that they were not about.
import assert from 'node:assert/strict';
import test from 'node:test';
import { World } from '../faults/world.mjs';

const hex = async (world, path) => (await world.exec(`od -An -v -tx1 ${path} | tr -d ' \\n'`)).output.trim();
const toHex = (text, encoding) => Buffer.from(text, encoding).toString('hex');

async function edit(world, path, ...pairs) {
	const edits = pairs.map(([old_string, new_string]) => ({ old_string, new_string }));
	const result = await world.call('file_edit', { path, edits });
	assert.ok(!result.error, JSON.stringify(result));
}

test('B51: edits of a CRLF file keep CRLF, and everything else byte for byte', async (t) => {
	const world = await World.make(t, { files: { f: 'a\r\nb\r\nc\r\n', mixed: 'p\nq\r\nr' } });
	assert.equal((await world.call('file_read', { path: 'f' })).content, 'a\r\nb\r\nc\r\n');
	await edit(world, 'f', ['b', 'B']);
	assert.equal(await world.text('f'), 'a\r\nB\r\nc\r\n');
	await edit(world, 'f', ['a\nB', 'x\ny']);
	assert.equal(await world.text('f'), 'x\r\ny\r\nc\r\n');
	await edit(world, 'f', ['c\r\n', 'z\r\n']);
	assert.equal(await world.text('f'), 'x\r\ny\r\nz\r\n');
	assert.equal(await hex(world, 'f'), toHex('x\r\ny\r\nz\r\n'));
	await edit(world, 'mixed', ['q', 'Q']);
	assert.equal(await world.text('mixed'), 'p\nQ\r\nr');
	for (const content of ['l1\nl2\n', 'l1\r\nl2\r\n', 'l1\rl2', '']) {
		assert.ok(!(await world.call('file_write', { path: 'n', content })).error);
		assert.equal(await world.text('n'), content);
	}
	const owners = await world.owners('f');
	assert.equal(owners.length, 3);
	assert.equal(owners[0], owners[1], 'both lines of the edit of two lines');
	assert.notEqual(owners[1], owners[2]);
});

test('B57: an edit of a file that is not valid UTF-8 changes exactly what it matches', async (t) => {
	const latin = Buffer.concat([Buffer.from('x = 1\n# caf'), Buffer.from([0xe9, 0x0a])]);
	const surrogate = Buffer.concat([Buffer.from('x = 1\n'), Buffer.from([0xed, 0xa0, 0x80, 0x0a])]);
	const late = Buffer.concat([Buffer.from('x = 1\n'), Buffer.alloc(1 << 20, 'line of text\n'), Buffer.from([0xff, 0x0a])]);
	const world = await World.make(t, { files: { latin, surrogate, late, wide: Buffer.from('\ufeffx = 1\n', 'utf16le') } });
	for (const [path, bytes] of Object.entries({ latin, surrogate, late })) {
		const read = await world.call('file_read', { path });
		assert.equal(read.error?.kind, 'invalid_request', path);
		assert.match(read.error.message, /UTF-8/);
		await edit(world, path, ['x = 1', 'x = 2']);
		const expected = Buffer.from(bytes);
		expected[4] = '2'.charCodeAt(0);
		const { output } = await world.exec(`sha256sum <${path}`);
		const { createHash } = await import('node:crypto');
		assert.equal(output.split(' ')[0], createHash('sha256').update(expected).digest('hex'), path);
	}
	const owners = await world.owners('latin');
	assert.equal(owners.length, 2);
	assert.match(owners[0], /^operation:/);
	assert.equal(owners[1], 'original');
	const refused = await world.call('file_edit', { path: 'wide', edits: [{ old_string: 'x = 1', new_string: 'x = 2' }] });
	assert.ok(refused.error, 'the text is not in it: every other byte is a NUL');
	assert.equal(await hex(world, 'wide'), toHex('\ufeffx = 1\n', 'utf16le'));
});
