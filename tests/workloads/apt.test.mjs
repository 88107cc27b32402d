// SPDX-License-Identifier: MIT
// A Debian made with debootstrap as root file system: apt-get installs into it from the
// distribution's mirror and from a package made here, as anywhere, and the directory stays as it is. Minutes and
// some hundred megabytes: only in the long form (SBX_LONG=1).
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { Lab, LONG } from '../commands/lab.mjs';
import { RawServer, State } from '../support.mjs';

const MIRROR = process.env.SBX_DEBIAN_MIRROR ?? 'http://deb.debian.org/debian';

function cannotMake() {
	if (!LONG) return 'long form only: SBX_LONG=1';
	const missing = ['debootstrap', 'dpkg-deb'].filter(
		(name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0);
	return missing.length ? `missing on this host: ${missing.join(', ')}` : false;
}

const snapshot = (dir) => execFileSync('find', [dir, '-printf', '%P %M %U %G %s %T@ %C@ %i %l\n'],
	{ maxBuffer: 64 << 20 }).toString().split('\n').sort().join('\n');

/** A package whose scripts make a user, a link in /usr and a directory that is the user's. */
async function makePackage(dir) {
	const tree = join(dir, 'package');
	await mkdir(join(tree, 'DEBIAN'), { recursive: true });
	await mkdir(join(tree, 'usr/share/sbx-hello'), { recursive: true });
	await writeFile(join(tree, 'usr/share/sbx-hello/text'), 'hello\n');
	await writeFile(join(tree, 'DEBIAN/control'), 'Package: sbx-hello\nVersion: 1\nArchitecture: all\n' +
		'Maintainer: nobody <nobody@localhost>\nDescription: a test\nDepends: adduser\n');
	await writeFile(join(tree, 'DEBIAN/postinst'), '#!/bin/sh\nset -e\n' +
		'adduser --system --group --home /var/lib/sbx-hello sbxhello >/dev/null\n' +
		'ln -sf /usr/share/sbx-hello/text /usr/bin/sbx-hello\n' +
		'chown sbxhello:sbxhello /var/lib/sbx-hello\nmknod /tmp/p p\n', { mode: 0o755 });
	execFileSync('dpkg-deb', ['--root-owner-group', '-b', tree, join(dir, 'workspace/sbx-hello.deb')]);
}

test('apt-get install in a root file system made with debootstrap', { skip: cannotMake() }, async (t) => {
	const state = await State.make(t);
	const root = join(state.dir, 'debian');
	await mkdir(join(state.dir, 'workspace'));
	await makePackage(state.dir);
	execFileSync('debootstrap', ['--variant=minbase', 'bookworm', root, MIRROR], { stdio: 'ignore' });
	const before = snapshot(root);
	await state.admin('create', '--workspace', join(state.dir, 'workspace'), '--id', 'lab',
		'--rootfs', root, '--network', 'host');
	state.ids.push('lab');
	const server = new RawServer(t, { env: state.env });
	await server.initialize();
	const lab = Object.assign(new Lab(), { t, state, id: 'lab', server });
	const inside = { workspace_session_id: await lab.session() };
	const sure = async (cmd, output) => {
		const result = await lab.finish(await lab.start(cmd, inside));
		assert.equal(result.exit_code, 0, `${cmd}: ${JSON.stringify(result)}`);
		assert.match(result.output, output, cmd);
		assert.doesNotMatch(result.output, /^W:|^E:|dpkg: (error|warning)|unsandboxed/m, cmd);
	};
	await sure('apt-get update', /Reading package lists/);
	await sure('apt-get install -y --no-install-recommends sqlite3 iputils-ping', /Setting up sqlite3/);
	await sure('sqlite3 :memory: "select 6 * 7"; dpkg --audit', /^42\n$/);
	await sure('apt-get install -y --no-install-recommends ./sbx-hello.deb 2>&1 | grep -v "^N:"', /Setting up sbx-hello/);
	await sure('cat /usr/bin/sbx-hello; stat -c %U /var/lib/sbx-hello; getent passwd sbxhello | wc -l',
		/^hello\nsbxhello\n1\n$/);
	await sure('apt-get remove -y sqlite3 && ! command -v sqlite3', /Removing sqlite3/);
	await lab.admin('session', 'discard', lab.id, inside.workspace_session_id);
	const after = await lab.exec('command -v sqlite3; ls -1 /var/lib/sbx-hello 2>&1 | wc -l');
	assert.equal(after.output, '1\n', 'the next session starts from the directory');
	assert.equal(snapshot(root), before);
});
