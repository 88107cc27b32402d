// SPDX-License-Identifier: MIT
// Trees prepared for whoever reads them later: import, capture, publication, squash, export and
// destruction handle all of it and never leave their directory.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { promisify } from 'node:util';
import { run } from '../support.mjs';
import { Arena, needs } from './arena.mjs';

const ENTRIES = Number(process.env.SBX_TEST_TREE_ENTRIES ?? 50_000); // the long form: 1,000,000
const DEPTH = Number(process.env.SBX_TEST_TREE_DEPTH ?? 3_000); // and 10,000
const LINKS = 1_000;

const hostile = (outside) => [
	'mkdir evil; cd evil; cp ../tool /tmp/tool; chmod 755 /tmp/tool',
	`ln -s /etc etc; ln -s /etc/passwd passwd; ln -s ${outside} outside; ln -s ${outside}/f f`,
	'ln -s ../../../../../../../.. up; ln -s loop loop; ln -s . self; ln -s nowhere dangling',
	`echo one >one; /tmp/tool links one ${LINKS}`,
	'mkfifo fifo; /tmp/tool socket socket',
	'touch $\'new\\nline\' $\'\\xff\\xfe\' $\'\\e[31mred\' -- -rf "$(printf "%255s" x)" " "',
	'mkdir locked; echo l >locked/l; chmod 0 locked/l locked; echo s >s; chmod 6755 s',
	'mkdir deep; cd deep; /tmp/tool deep 1000',
].join('\n');

const large = [
	'cp tool /tmp/tool; chmod 755 /tmp/tool; cd evil',
	`/tmp/tool many many ${ENTRIES}; mkdir deeper; cd deeper; /tmp/tool deep ${DEPTH}`,
].join('\n');

const LOOK = [
	'cd evil; ls many | wc -l; (cd deeper && /tmp/tool depth); stat -c %i one one1 one9 | uniq | wc -l',
	'readlink etc passwd up loop self dangling; stat -c %F fifo; ls socket 2>&1 | grep -c "No such"',
	'ls -q | grep -c .; cat locked/l; stat -c %a s locked',
].join('; ');

const SEEN = [`${ENTRIES}`, `${DEPTH} bottom`, '1', '/etc', '/etc/passwd',
	'../../../../../../../..', 'loop', '.', 'nowhere', 'fifo', '1', `${LINKS + 21}`, 'l', '6755', '0',
	''].join('\n');

async function makeOutside(arena) {
	const outside = join(arena.state.dir, 'outside');
	await mkdir(join(outside, 'sub'), { recursive: true });
	for (const name of ['f', 'sub/g']) await writeFile(join(outside, name), 'outside\n');
	return outside;
}

async function assertUntouched(outside) {
	assert.deepEqual((await readdir(outside, { recursive: true })).sort(), ['f', 'sub', 'sub/g']);
	for (const name of ['f', 'sub/g']) {
		assert.equal(await readFile(join(outside, name), 'utf8'), 'outside\n');
		assert.equal((await lstat(join(outside, name))).nlink, 1);
		assert.equal((await lstat(join(outside, name))).mode & 0o777, 0o644);
	}
}

test('a hostile tree', { skip: needs('gcc') }, async (t) => {
	const arena = await Arena.make(t);
	const { state, client } = arena;
	const outside = await makeOutside(arena);
	const id = await arena.sandbox('trees');

	await t.test('is published whole; the socket is dropped and named', async () => {
		const { publish, output } = await run(client, id, hostile(outside));
		assert.equal(output, '');
		assert.ok(publish.added > LINKS, JSON.stringify(publish));
		assert.equal(publish.dropped.length, 1);
		assert.match(JSON.stringify(publish.dropped), /evil\/socket/);
	});

	await t.test('is exported into the directory and nowhere else', async () => {
		const dest = join(state.dir, 'exported');
		try {
			await state.admin('export', id, dest);
			assert.equal(await readlink(join(dest, 'evil/outside')), outside);
			assert.equal((await lstat(join(dest, 'evil/one'))).nlink, LINKS + 1);
			assert.ok((await lstat(join(dest, 'evil/fifo'))).isFIFO());
			await assertUntouched(outside);
		} finally {
			await promisify(execFile)('rm', ['-rf', dest]); // has names that are no UTF-8
		}
	});

	await t.test('is exported as an archive', async () => {
		const dest = join(state.dir, 'exported.tar');
		await state.admin('export', id, dest, '--format', 'tar');
		const { stdout } = await promisify(execFile)('tar', ['tf', dest, '--quoting-style=c'],
			{ maxBuffer: 1 << 28 });
		assert.doesNotMatch(stdout, /^"(\/|.*\.\.\/)/m);
		assert.match(stdout, /"\.?\/?evil\/new\\nline"/);
	});

	await t.test('is refused by the file tools where it is no plain file', async () => {
		for (const path of ['fifo', 'etc/passwd', 'f', 'outside/f', 'self/one', 'loop', 'deep'])
			for (const name of ['file_read', 'file_write', 'file_edit']) {
				const { error } = await arena.tool(name, { sandbox_id: id, path: `evil/${path}`,
					...{ file_write: { content: 'x' }, file_edit: {
						edits: [{ old_string: 'outside', new_string: 'x' }] } }[name] });
				assert.equal(error?.kind, 'invalid_request', `${name} ${path}: ${JSON.stringify(error)}`);
			}
	});

	await t.test('survives a squash and a check of the store', async () => {
		await state.admin('squash', id);
		await state.admin('verify', id); // fails by its exit code
	});

	await t.test('grows wide and deep', async () => {
		const { publish, output } = await run(client, id, large);
		assert.equal(output, '');
		assert.ok(publish.added > ENTRIES + DEPTH, JSON.stringify(publish));
	});

	const look = `install -m 755 tool /tmp/; ${LOOK}`;
	await t.test('is seen as it was made', async () => {
		assert.equal((await run(client, id, look)).output, SEEN);
	});

	await t.test('does not lead out when a session over it or the sandbox is destroyed', async () => {
		const session = await arena.session(id);
		await session.output(`cp -a evil/outside evil/up .; ln -s ${outside} a; ln -s / b; mkdir c; ` +
			`ln -s ${outside}/sub c/d; rm -r evil/deeper; ln -s ${outside} evil/deeper`);
		await state.admin('session', 'discard', id, session.id);
		const second = await arena.session(id);
		await second.output(`ln -s ${outside} a; mv evil/many evil/more; ln -s ${outside} evil/many`);
		await state.admin('destroy', id, '--force');
		state.ids.splice(state.ids.indexOf(id), 1);
		await assertUntouched(outside);
	});
});

test('a name that is now a link, now a directory', { skip: needs('gcc') }, async (t) => {
	const arena = await Arena.make(t);
	const { state, client } = arena;
	const outside = await makeOutside(arena);
	const id = await state.sandbox('turns', { 'was-dir/sub/g': 'inside\n' });
	await run(client, id, `ln -s ${outside} was-link`);
	await run(client, id, 'rm was-link; mkdir -p was-link/sub; echo in >was-link/sub/g; ' +
		`rm -r was-dir; ln -s ${outside} was-dir`);

	await t.test('is exported as what it is last', async () => {
		const dest = join(state.dir, 'exported');
		await state.admin('export', id, dest);
		assert.equal(await readFile(join(dest, 'was-link/sub/g'), 'utf8'), 'in\n');
		assert.equal(await readlink(join(dest, 'was-dir')), outside);
		await assertUntouched(outside);
	});

	await t.test('is written to inside only', async () => {
		const { error } = await arena.tool('file_write',
			{ sandbox_id: id, path: 'was-dir/sub/g', content: 'x' });
		assert.equal(error.kind, 'invalid_request');
		await arena.tool('file_write', { sandbox_id: id, path: 'was-link/f', content: 'x' });
		await state.admin('squash', id);
		await assertUntouched(outside);
	});
});

test('links of an imported workspace', { skip: needs('gcc') }, async (t) => {
	const arena = await Arena.make(t);
	const outside = await makeOutside(arena);
	const workspace = join(arena.state.dir, 'prepared');
	await mkdir(workspace);
	await symlink(outside, join(workspace, 'd'));
	await symlink(join(outside, 'f'), join(workspace, 'f'));
	await arena.state.admin('create', '--workspace', workspace, '--id', 'linked');
	arena.state.ids.push('linked');

	await t.test('stay links that lead nowhere', async () => {
		const { output } = await run(arena.client, 'linked', 'readlink d f; cat d/f f 2>/dev/null; ls');
		assert.equal(output, `${outside}\n${outside}/f\nd  f\n`);
		await assertUntouched(outside);
	});
});
