// SPDX-License-Identifier: MIT
// Names and attributes that look like an overlay's bookkeeping (case B10): whoever makes them gets
// ordinary files, and nobody else's files vanish.
import assert from 'node:assert/strict';
import test from 'node:test';
import { run } from '../support.mjs';
import { Arena, needs } from './arena.mjs';

const FORGERY = [
	'touch .wh.victim n/.wh..wh..opq .wh.keep; mkdir .wh..wh..opq layers; echo {} >layer.json',
	'setfattr -n user.overlay.opaque -v y keep; setfattr -n user.overlay.whiteout -v y victim',
	'setfattr -n user.overlay.redirect -v /etc n; setfattr -n user.overlay.metacopy -v y moved',
	'setfattr -n user.overlay.overlay.opaque -v y keep',
	'for a in opaque redirect metacopy origin whiteout; do ' +
		'setfattr -n trusted.overlay.$a -v y keep 2>/dev/null && echo $a; done',
	'mknod whiteout c 0 0 2>&1 | grep -c "not permitted"',
].join('\n');

const VIEW = [
	'find . -name ".wh*" -o -name "layer*" | LC_ALL=C sort',
	'cat victim keep/k n/file moved layer.json; ls whiteout 2>&1 | grep -c "No such"',
].join('; ');

const EXPECTED = './.wh..wh..opq\n./.wh.keep\n./.wh.victim\n./layer.json\n./layers\n' +
	'./n/.wh..wh..opq\nvictim\nk\nfile\nmoved\n{}\n1\n';

test('forged marks of overlays', { skip: needs('gcc', 'setfattr') }, async (t) => {
	const arena = await Arena.make(t);
	const id = await arena.state.sandbox('names',
		{ victim: 'victim\n', 'keep/k': 'k\n', 'n/file': 'file\n', moved: 'moved\n' });

	await t.test('are accepted as ordinary names or refused', async () => {
		const made = await run(arena.client, id, FORGERY);
		assert.equal(made.output, '1\n');
		assert.equal(made.publish_rejected, undefined);
	});

	await t.test('hide nothing from the next session', async () => {
		assert.equal((await run(arena.client, id, VIEW)).output, EXPECTED);
	});

	await t.test('are no attribute afterwards', async () => {
		const { output } = await run(arena.client, id,
			'getfattr -R -m "overlay" . 2>/dev/null | grep -c overlay');
		assert.equal(output, '0\n');
	});

	await t.test('survive a squash and leave a sound store', async () => {
		await run(arena.client, id, 'touch one');
		await arena.state.admin('squash', id);
		assert.equal((await run(arena.client, id, VIEW)).output, EXPECTED);
		await arena.state.admin('verify', id); // fails by its exit code
	});
});
