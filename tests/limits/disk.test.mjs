// SPDX-License-Identifier: MIT
// Sessions that fill the disk: each is ended at its limit, the result says so, what it had written is
// kept, and nobody else notices.
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { Lab } from '../commands/lab.mjs';
import { RawServer, State } from '../support.mjs';

const MIB = 1 << 20;
const FILL = 'i=0; while :; do head -c 1M /dev/zero >f$i || break; i=$((i+1)); done';
const TIMEOUT_MS = 60_000; // of a command that should meet its limit long before

async function lab(t, ...options) {
	const state = await State.make(t);
	const workspace = join(state.dir, 'workspace');
	await mkdir(workspace);
	await state.admin('create', '--workspace', workspace, '--id', 'lab', ...options);
	state.ids.push('lab');
	const server = new RawServer(t, { env: state.env });
	await server.initialize();
	return Object.assign(new Lab(), { t, state, id: 'lab', server });
}

const megabytes = async (made, more) =>
	Number((await made.exec("du -sm . | cut -f1", more)).output);

const python = (...lines) => `python3 - <<'END'\n${lines.join('\n')}\nEND`;

// the kernel ends its program, unless sandboxd sees first that it and its directory are too much
const ONE_FILE = /^disk limit hit: .*(one file alone.* 64\.0 MiB|may have 64\.0 MiB)/;

/** [what, command, exit codes that fit, note, whether something is published; null: hardly] */
const gluttons = [
	['many files', FILL, [137], /^disk limit hit: .* on disk and may have 64\.0 MiB \(disk_max\)/, true],
	['one file', 'head -c 1G /dev/zero >big', [153, 137], ONE_FILE, true],
	['one file that is written to by itself', 'exec dd if=/dev/zero of=big bs=1M status=none', [153, 137],
		ONE_FILE, true],
	['files in a deep tree', python('import os',
		'for i in range(3000):',
		"    os.mkdir('d'); os.chdir('d')",
		"    open('f', 'wb').write(b'x' * 65536)"), [137], /^disk limit hit/, true],
	['files that are deleted while they are open', python('import os, time',
		'kept = []',
		'while True:',
		"    f = open('gone', 'wb', 0)",
		"    os.unlink('gone')",
		'    f.write(b"x" * (1 << 20))',
		'    kept.append(f)'), [137], /^disk limit hit/, null],
];

test('a session that fills the disk', async (t) => {
	const made = await lab(t, '--disk-max', String(64 * MIB));
	for (const [what, cmd, codes, note, published] of gluttons)
		await t.test(what, async () => {
			const glutton = made.exec(cmd, { timeout_ms: TIMEOUT_MS });
			const neighbour = await made.exec('echo fine');
			assert.deepEqual([neighbour.output, neighbour.notes], ['fine\n', undefined]);
			const result = await glutton;
			assert.ok(codes.includes(result.exit_code), JSON.stringify(result));
			assert.equal(result.status, 'error');
			assert.match(result.notes.join('\n'), note);
			assert.equal(result.notes.length, 1, result.notes.join('\n'));
			if (published) assert.ok(result.publish.layer_id, JSON.stringify(result));
			const size = await megabytes(made);
			// how far it came depends on how fast the disk is; a walk is asked for at half of it
			if (published) assert.ok(size >= 32 && size < 2000, `${size} MiB`);
			const next = await made.exec('rm -rf *; echo on');
			assert.deepEqual([next.output, next.notes], ['on\n', undefined], 'what is published is not held against it');
		});
});

test('files without content', async (t) => {
	const made = await lab(t, '--inodes-max', '2000');
	const result = await made.exec('mkdir d; cd d; for i in $(seq 1000); do seq -f "$i-%g" 1000 | xargs touch; done',
		{ timeout_ms: TIMEOUT_MS });
	assert.equal(result.exit_code, 137, JSON.stringify(result));
	assert.match(result.notes.join('\n'), /^disk limit hit: .* files and directories on disk and may have 2000/);
	assert.ok(result.publish.added > 1000);
});

test('what is within the limit is left alone', async (t) => {
	const made = await lab(t, '--disk-max', String(64 * MIB), '--inodes-max', '20000');
	const result = await made.exec('head -c 10M /dev/zero >a; for i in $(seq 1000); do ln a l$i; done; ' +
		'truncate -s 60M sparse; for i in $(seq 5); do head -c 40M /dev/zero >t; rm t; done; ' +
		'head -c 100M /dev/zero >/tmp/t || :; sleep 3; ls | wc -l', { timeout_ms: TIMEOUT_MS });
	assert.match(result.output, /^1002\n$/m, JSON.stringify(result));
	assert.deepEqual([result.exit_code, result.notes], [0, undefined], JSON.stringify(result));
});

test('a managed session lives on, may make room, and is kept to its limit', async (t) => {
	const made = await lab(t, '--disk-max', String(32 * MIB));
	const inside = { workspace_session_id: await made.session(), timeout_ms: TIMEOUT_MS };
	const hog = await made.exec(`echo kept >kept; ${FILL}`, inside);
	assert.deepEqual([hog.status, hog.exit_code], ['error', 137], JSON.stringify(hog));
	assert.match(hog.notes.join('\n'), /^disk limit hit/);
	const over = await megabytes(made, inside);
	assert.ok(over > 32);

	// nothing more is taken, whether sandboxd is still the same one or not
	for (const again of [async () => {}, () => made.crash()]) {
		await again();
		const quiet = await made.exec('cat kept; sleep 1; echo on', inside);
		assert.deepEqual([quiet.output, quiet.notes], ['kept\non\n', undefined], JSON.stringify(quiet));
		const more = await made.exec('mkdir -p more; cd more; ' + FILL, inside);
		assert.match(more.notes?.join('\n') ?? '', /^disk limit hit/, JSON.stringify(more));
	}
	const room = await made.exec('rm -r more f*; sleep 0.5; head -c 8M /dev/zero >small; ls -1', inside);
	assert.deepEqual([room.output, room.notes], ['kept\nsmall\n', undefined], JSON.stringify(room));
	const publish = await made.admin('session', 'publish', 'lab', inside.workspace_session_id);
	assert.equal(publish.publish?.added ?? publish.added, 2, JSON.stringify(publish));
});

test('limits are shown', async (t) => {
	const made = await lab(t, '--disk-max', '2G', '--inodes-max', '5000');
	const shown = await made.admin('inspect', 'lab');
	assert.deepEqual([shown.disk_max, shown.inodes_max], [2 << 30 >>> 0, 5000]);
	assert.match(await made.state.admin('inspect', 'lab'), /disk +2\.0 GiB\n.*files on disk +5000/s);
});
