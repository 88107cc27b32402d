// SPDX-License-Identifier: MIT
// System calls that reach around the walls, made by a program with good arguments as in-session
// root. Each row: what is attacked, the right answer, and the probe's names of the attacks.
import assert from 'node:assert/strict';
import { arch } from 'node:os';
import test from 'node:test';
import { Arena, needs } from './arena.mjs';

const table = [
	['mount(2) and umount2(2)', 'EPERM', `mount-tmpfs mount-proc mount-sysfs mount-overlay
		bind-over-proc remount-usr make-root-shared umount-workspace pivot-root`],
	['cgroup mounts, the way to a release_agent', 'EPERM', 'mount-cgroup mount-cgroup2'],
	['masks of /proc cannot be taken off', 'EPERM', 'unmask-keys'],
	['the mount calls by descriptor', 'EPERM', `open-tree move-mount fsopen fsmount fspick
		mount-setattr`],
	['the newest mount calls, by whether libseccomp knows them', 'EPERM|ENOSYS', 'open-tree-attr statmount'],
	['unshare into new namespaces', 'EPERM', `unshare-user unshare-mount unshare-pid unshare-net
		unshare-ipc unshare-uts unshare-cgroup unshare-time`],
	['clone into new namespaces', 'EPERM', `clone-user clone-mount clone-pid clone-net
		clone-user-mount`],
	['clone3, whose flags no filter can see', 'ENOSYS', 'clone3-user'],
	['setns into the own user namespace', 'EPERM', 'setns-user'],
	["setns into init's mount namespace", 'EACCES', 'setns-init-mount'],
	['the host name', 'EPERM', 'sethostname'],
	['keyrings', 'EPERM', 'add-key request-key keyctl-session'],
	['bpf', 'EPERM', 'bpf-map'],
	['io_uring, which goes around a filter', 'ENOSYS', `io-uring-setup io-uring-enter
		io-uring-register`],
	['userfaultfd and perf', 'EPERM', 'userfaultfd perf-event-open'],
	['code for the kernel', 'EPERM', 'init-module finit-module delete-module kexec-load'],
	['the machine as a whole', 'EPERM', `reboot swapon acct syslog set-clock settimeofday quotactl
		fanotify`],
	['files by handle', 'EPERM', 'handle-open handle-of-usr'],
	['execution domains', 'EPERM', 'personality-uname26 personality-32bit personality-read-exec'],
	['packet, vsock and other odd socket families', 'EAFNOSUPPORT', `socket-packet socket-vsock
		socket-alg socket-xdp socket-tipc socket-rds`],
	['raw sockets and netlink of the kernel', 'EPERM', `socket-raw-ipv4 socket-raw-ipv6
		socket-netfilter socket-uevent`],
	['typing into the terminal (TIOCSTI, TIOCLINUX)', 'EPERM', `tiocsti tiocsti-high-bit tioclinux
		tioclinux-high-bit tioccons`],
	['ptrace of init', 'EPERM', 'attach-init seize-init'],
	["init's memory, descriptors and limits", 'EPERM', `read-init-memory steal-init-descriptor
		limit-init`],
	['device nodes', 'EPERM', 'device-mem device-disk device-in-workspace device-in-shm'],
	['capabilities do not come back', 'EPERM', 'raise-capabilities'],
	['xattrs of the kernel and of overlays', 'EPERM', 'mark-trusted mark-security'],
	['calls newer than the filter', 'ENOSYS', 'call-of-the-future'],
	['x32 numbers', 'ENOSYS', 'x32-getpid x32-mount', 'x64'],
	['the 32-bit entry', 'ENOSYS', 'i386-getpid i386-unshare-user', 'x64'],
	['ports and descriptor tables', 'EPERM', 'iopl ioperm modify-ldt', 'x64'],
].map(([wall, answer, names, only]) => ({ wall, answer, names: names.split(/\s+/), only }));

const rows = table.filter((row) => !row.only || row.only === arch());

test('system calls around the walls', { skip: needs('gcc') }, async (t) => {
	const arena = await Arena.make(t);
	const session = await arena.session(await arena.sandbox('calls'));
	for (const { wall, answer, names } of rows)
		await t.test(`${wall}: ${answer}`, async () => {
			const all = names.join(' ');
			const got = await session.output(
				`for a in ${all}; do echo "$a $(/tmp/attack $a </dev/tty)"; done`);
			const lines = names.map((name) => `${name} (${answer})`);
			assert.match(got, new RegExp(`^${lines.join('\n')}$`));
		});

	await t.test('every attack of the probe is in this table', async () => {
		const listed = (await arena.onHost('attack')).split('\n').sort();
		assert.deepEqual(rows.flatMap((row) => row.names).sort(), listed);
	});
});
