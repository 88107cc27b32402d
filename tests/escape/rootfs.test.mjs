// SPDX-License-Identifier: MIT
// Sandboxes with a root file system of their own (--rootfs DIR): each session has it for itself, it
// never changes, and nothing in it is believed.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmod, copyFile, lstat, mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { Lab } from '../commands/lab.mjs';
import { RawServer, State } from '../support.mjs';

const LINKS = ['sh', 'cat', 'echo', 'grep', 'id', 'ls', 'mkdir', 'mount', 'mv', 'readlink', 'rm', 'rmdir',
	'sed', 'sleep', 'sort', 'stat', 'touch', 'tr', 'umount', 'ln', 'find', 'chown', 'su', 'wc', 'env', 'head'];

/** A root file system of one program. */
async function makeRoot(dir) {
	for (const name of ['bin', 'etc', 'var', 'var/tmp', 'root', 'home', 'home/me'])
		await mkdir(join(dir, name), { recursive: true });
	await copyFile('/bin/busybox', join(dir, 'bin/busybox'));
	await chmod(join(dir, 'bin/busybox'), 0o755);
	for (const name of LINKS) await symlink('busybox', join(dir, 'bin', name));
	await writeFile(join(dir, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh\n');
	await writeFile(join(dir, 'etc/group'), 'root:x:0:\nme:x:1000:\n');
	await writeFile(join(dir, 'root/tool'), 'tool\n');
	return dir;
}

/** Why there is no such root on this host, or false. */
function cannotMake() {
	const { status, stdout } = spawnSync('sh', ['-c', 'ldd /bin/busybox 2>&1'], { encoding: 'utf8' });
	if (spawnSync('test', ['-x', '/bin/busybox']).status !== 0) return 'missing on this host: busybox-static';
	return status === 0 && !/not a dynamic|statically/.test(stdout) ? 'busybox is not static' : false;
}
const skip = cannotMake();

/** Everything about a tree but access times. */
const snapshot = (dir) => execFileSync('find', [dir, '-printf', '%P %M %U %G %s %T@ %C@ %i %l\n'])
	.toString().split('\n').sort().join('\n');

async function lab(t, arrange, ...options) {
	const state = await State.make(t);
	const root = await makeRoot(join(state.dir, 'root'));
	const workspace = join(state.dir, 'workspace');
	await mkdir(workspace);
	await writeFile(join(workspace, 'f'), 'project\n');
	await arrange?.(root);
	const before = snapshot(root);
	await state.admin('create', '--workspace', workspace, '--id', 'lab', '--rootfs', root, ...options);
	state.ids.push('lab');
	const server = new RawServer(t, { env: state.env });
	await server.initialize();
	const made = Object.assign(new Lab(), { t, state, id: 'lab', server });
	made.expect = async (cmd, output, more) => {
		const result = await made.exec(cmd, more);
		assert.equal(result.output, output, `${cmd}: ${JSON.stringify(result)}`);
	};
	made.unchanged = () => assert.equal(snapshot(root), before, 'the directory is as it was');
	return { made, root };
}

test('a session has the root file system, and its changes go with it', { skip }, async (t) => {
	const { made, root } = await lab(t);
	await made.expect('cat f /root/tool; id -u; ls -1 /; stat -c "%n %u %a" /tmp /run /home/me',
		'project\ntool\n0\nbin\ndev\netc\nhome\nproc\nroot\nrun\nsys\ntmp\nvar\nworkspace\n' +
			'/tmp 0 1777\n/run 0 755\n/home/me 0 755\n');
	// nothing of this is in the workspace: the session is not published, and must not be used again
	const changes = 'echo x >/etc/x; rm /root/tool; mkdir -p /var/lib/x; chown 1000 /home/me; ' +
		'echo me >>/etc/passwd; mv /home /house; : >/var/tmp/x; echo done';
	const changed = await made.exec(changes);
	assert.deepEqual([changed.output, changed.publish.layer_id], ['done\n', null]);
	const fresh = 'cat /root/tool; ls /etc/x /var/lib /house /var/tmp/x 2>/dev/null; stat -c %u /home/me; ' +
		'grep -c me /etc/passwd';
	await made.expect(fresh, 'tool\n0\n1\n');
	await made.expect('echo y >/var/y; cat f; ls -1 /var', 'project\ntmp\ny\n');
	await made.expect('ls /var', 'tmp\n');

	// and the other way: what is published is the workspace only
	const published = await made.exec('echo more >g; echo x >/etc/x');
	assert.equal(published.publish.added, 1);
	await made.expect('ls -1; ls -1 /etc', 'f\ng\ngroup\nhosts\npasswd\n');
	assert.equal(await readFile(join(root, 'root/tool'), 'utf8'), 'tool\n');
	made.unchanged();
});

test("two sessions do not see each other's root", { skip }, async (t) => {
	const { made } = await lab(t);
	const a = { workspace_session_id: await made.session() };
	const b = { workspace_session_id: await made.session() };
	await made.exec('echo a >/etc/a; rm /root/tool', a);
	await made.expect('ls -1 /etc /root', '/etc:\ngroup\nhosts\npasswd\n\n/root:\ntool\n', b);
	await made.expect('ls -1 /etc', 'a\ngroup\nhosts\npasswd\n', a);
	made.unchanged();
});

test('a managed session keeps its root, also when sandboxd was killed', { skip }, async (t) => {
	const { made } = await lab(t);
	const inside = { workspace_session_id: await made.session() };
	await made.exec('echo kept >/etc/kept; rm /root/tool; ln -s /etc /home/link; echo w >w', inside);
	await made.crash();
	await made.expect('cat /etc/kept w; ls /root; readlink /home/link; id -u; ls -d /proc/self',
		'kept\nw\n/etc\n0\n/proc/self\n', inside);
	await made.admin('session', 'discard', made.id, inside.workspace_session_id);
	await made.expect('ls -1 /etc /root', '/etc:\ngroup\nhosts\npasswd\n\n/root:\ntool\n');
	made.unchanged();
});

test('a workspace inside a directory of the root leaves that as it is', { skip }, async (t) => {
	const arrange = (root) => execFileSync('chown', ['1000:1000', join(root, 'home/me')]);
	const { made } = await lab(t, arrange, '--root-at', '/home/me/src/p');
	await made.expect('readlink /proc/self/cwd; stat -c "%n %u" /home /home/me /home/me/src; cat f',
		'/home/me/src/p\n/home 0\n/home/me 1000\n/home/me/src 0\nproject\n');
	made.unchanged();
});

test('links in the place of mount points lead nowhere', { skip }, async (t) => {
	const { made } = await lab(t, async (root) => {
		const outside = join(root, '../outside');
		await mkdir(outside);
		await writeFile(join(outside, 'secret'), 'secret\n');
		await symlink('/etc', join(root, 'proc'));
		await symlink(outside, join(root, 'dev'));
		await symlink('../../../../../../../../tmp', join(root, 'tmp'));
		await writeFile(join(root, 'sys'), 'a file\n');
		await symlink('/proc/1/root', join(root, 'run'));
		await symlink('/etc', join(root, 'workspace'));
		await symlink(join(outside, 'secret'), join(root, 'etc/hosts'));
		await symlink('../../../../../../../../', join(root, 'up'));
	});
	await made.expect('stat -c "%n %F" /proc /dev /tmp /sys /run /workspace /etc/hosts; readlink /proc/self/cwd; cat f',
		['/proc', '/dev', '/tmp', '/sys', '/run', '/workspace'].map((p) => `${p} directory\n`).join('') +
			'/etc/hosts regular file\n/workspace\nproject\n');
	await made.expect('grep -c localhost /etc/hosts; ls /up | tr "\\n" " "; ls -A /sys; ls -1 /dev/null /dev/pts/ptmx',
		'2\nbin dev etc home proc root run sys tmp up var workspace /dev/null\n/dev/pts/ptmx\n');
	made.unchanged();
});

const walls = {
	'the root is the overlay, without setuid or devices': [
		"grep ' / / ' /proc/self/mountinfo | sed 's/.* \\(rw[^ ]*\\) - \\([a-z]*\\) .*/\\1 \\2/'",
		'rw,nosuid,nodev,relatime overlay\n'],
	'mounts cannot be changed': [
		'mount -t tmpfs x /etc 2>/dev/null || echo no; umount /proc 2>/dev/null || echo no; ' +
			'umount -l /dev 2>/dev/null || echo no; mount -o remount,rw /dev 2>/dev/null || echo no',
		'no\nno\nno\nno\n'],
	'mount points cannot be moved or removed': [
		'for d in proc dev sys tmp run; do mv /$d /x 2>/dev/null && echo $d moved; ' +
			'rmdir /$d 2>/dev/null && echo $d removed; done; ls -d /proc /dev /sys /tmp /run | wc -l', '5\n'],
	'/dev and /sys are read-only, /sys is empty': [
		'for d in /dev /sys; do touch $d/x 2>/dev/null && echo $d; done; ls -A /sys', ''],
	'masks of /proc hold': [
		'for f in kcore keys timer_list; do [ ! -e /proc/$f ] || [ "$(stat -c %t:%T /proc/$f)" = 1:3 ] || ' +
			'echo $f; done; (echo 1 >/proc/sys/kernel/panic) 2>/dev/null || echo no', 'no\n'],
	capabilities: ["grep -E '^Cap(Eff|Bnd)' /proc/self/status | tr '\\t' ' '",
		'CapEff: 00000000800401fb\nCapBnd: 00000000800401fb\n'],
	'nothing of the host is in the mount table': [
		"grep -cE 'ext4|xfs|btrfs|/var/lib|sbx' /proc/self/mountinfo", '0\n'],
};

test('the walls are those of any session', { skip }, async (t) => {
	const { made } = await lab(t);
	const inside = { workspace_session_id: await made.session() };
	for (const [wall, [cmd, output]] of Object.entries(walls))
		await t.test(wall, () => made.expect(cmd, output, inside));
	made.unchanged();
});

test("what a session changes in its root counts against its limit of the disk", { skip }, async (t) => {
	const { made } = await lab(t, null, '--disk-max', '32M');
	const cmd = 'i=0; while :; do head -c 1000000 /dev/zero >/var/f$i; i=$((i+1)); done';
	const result = await made.exec(cmd, { timeout_ms: 60_000 });
	assert.equal(result.exit_code, 137, JSON.stringify(result));
	assert.match(result.notes.join('\n'), /^disk limit hit: .*32\.0 MiB/);
	await made.expect('ls -1 /var', 'tmp\n');
	made.unchanged();
});

test('what cannot be a root file system is refused by name', { skip }, async (t) => {
	const state = await State.make(t);
	const root = await makeRoot(join(state.dir, 'root'));
	const workspace = join(state.dir, 'workspace');
	await mkdir(workspace);
	await symlink(root, join(state.dir, 'link'));
	await symlink(state.dir, join(state.dir, 'around'));
	const image = await makeRoot(join(state.dir, 'nosh'));
	await rename(join(image, 'bin/sh'), join(image, 'bin/other'));
	const outward = await makeRoot(join(state.dir, 'outward'));
	await rename(join(outward, 'bin/sh'), join(outward, 'bin/other'));
	await symlink(join('../../../../../../../..', root, 'bin/busybox'), join(outward, 'bin/sh'));
	const create = (dir) => state.admin('create', '--workspace', workspace, '--id', 'x', '--rootfs', dir)
		.then(() => assert.fail(`${dir} was taken`), (error) => error.stderr);
	const cases = [
		[join(state.dir, 'none'), /No such file or directory/],
		[join(root, 'etc/passwd'), /Not a directory/],
		[join(state.dir, 'link'), /symbolic link.*realpath/],
		[join(state.dir, 'around/root'), /symbolic link.*realpath/],
		[workspace, /no program \/bin\/sh in it/],
		[image, /no program \/bin\/sh in it/],
		[outward, /no program \/bin\/sh in it/],
		['/', /holds the state directory/],
		[state.dir, /holds the state directory/],
	];
	for (const [dir, reason] of cases) assert.match(await create(dir), reason, dir);
	await assert.rejects(lstat(join(state.env.SBX_STATE_DIR, 'x')), { code: 'ENOENT' });

	// what became wrong afterwards is told at the start
	await state.admin('create', '--workspace', workspace, '--id', 'later', '--rootfs', root);
	state.ids.push('later');
	await rename(root, `${root}-moved`);
	await symlink('/', root);
	await assert.rejects(state.admin('session', 'create', 'later'), /--rootfs.*symbolic link/);
	await state.admin('create', '--workspace', workspace, '--id', 'inside', '--rootfs', `${root}-moved`,
		'--root-at', '/home/me/p');
	state.ids.push('inside');
	await rename(join(`${root}-moved`, 'home'), join(`${root}-moved`, 'house'));
	await symlink('/etc', join(`${root}-moved`, 'home'));
	await assert.rejects(state.admin('session', 'create', 'inside'), /\/home of the root file system is a symbolic link/);
	assert.match(await create(join(state.env.SBX_STATE_DIR, 'later/sessions')), /inside the state directory/);
});
