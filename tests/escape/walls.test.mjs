// SPDX-License-Identifier: MIT
// What files, processes and privileges a session has, asked as in-session root with ordinary
// programs. Each row: the wall, a command, and all that it may print.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import test from 'node:test';
import { until } from '../support.mjs';
import { Arena, needs } from './arena.mjs';

// CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, FSETID 4, KILL 5, SETGID 6, SETUID 7, SETPCAP 8,
// SYS_CHROOT 18, SETFCAP 31
const KEPT = '00000000800401fb';
const NONE = '0000000000000000';

const capabilities = (kept, of) => [
	`grep ^Cap /proc/${of}/status | tr '\\t' ' '`,
	['Inh', 'Prm', 'Eff', 'Bnd'].map((set) => `Cap${set}: ${kept}\n`).join('') + `CapAmb: ${NONE}`,
];

/** Each path and how opening it for writing, and writing to it, is answered. */
const writes = (answers) => [
	`for p in ${Object.keys(answers).join(' ')}; do echo $p $(/tmp/tool write $p); done`,
	Object.entries(answers).map((pair) => pair.join(' ')).join('\n'),
];

const AS_USER = 'setpriv --reuid 1000 --regid 1000 --clear-groups';

const rows = {
	'all five capability sets are the keep-set': capabilities(KEPT, 'self'),
	"init's as well": capabilities(KEPT, '1'),
	'no new privileges, and a filter': [
		"grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | tr '\\t' ' '",
		'NoNewPrivs: 1\nSeccomp: 2',
	],

	'a program is born with its terminal and nothing else open': ['/tmp/tool fds',
		'0 /dev/pts/0\n1 /dev/pts/0\n2 /dev/pts/0'],
	'the working directory and the root are inside': [
		'readlink /proc/self/cwd /proc/self/root; cd /proc/self/cwd/../../../..; pwd -P',
		'/workspace\n/\n/'],
	'descriptors of the shell lead nowhere': [
		'for fd in $(seq 0 255); do (cd /proc/self/fd/$fd) 2>/dev/null && echo $fd; done', ''],
	'chroot and a directory from before do not lead out': ['/tmp/tool breakout', 'inside'],

	"init's program cannot be read, run or written": [
		'/tmp/tool write /proc/1/exe; /tmp/tool reopen /proc/1/exe; /tmp/tool run /proc/1/exe; ' +
			'head -c 1 /proc/1/exe 2>&1 | grep -c denied; readlink /proc/1/exe | wc -l',
		'EACCES\nEACCES\nEACCES\n1\n0'],
	'a program of the host is not overwritten through /proc/PID/exe': [
		'sleep 30 & for p in /proc/$!/exe /usr/bin/env; do /tmp/tool write $p; ' +
			'/tmp/tool reopen $p; done; kill $!',
		'EACCES\nEACCES\nEACCES\nEACCES'],
	"init's directories cannot be entered": [
		'for d in cwd root fd map_files ns; do ls /proc/1/$d/ >/dev/null 2>&1 && echo $d; done; :',
		''],
	"init's memory and environment": [
		'cat /proc/1/mem /proc/1/maps /proc/1/environ /proc/1/auxv 2>&1 | grep -c denied', '4'],
	"init's command line tells nothing of the host": ["tr '\\0' ' ' </proc/1/cmdline", 'sbx-init'],
	"init's files in /proc": writes({
		'/proc/1/oom_score_adj': 'EACCES', '/proc/1/attr/current': 'EPERM',
		'/proc/1/comm': 'EACCES', '/proc/1/mem': 'EACCES', '/proc/1/uid_map': 'EACCES',
		'/proc/1/timerslack_ns': 'EPERM', '/proc/1/coredump_filter': 'EACCES',
	}),
	'core_pattern and other parameters of the kernel': writes({
		'/proc/sys/kernel/core_pattern': 'EACCES', '/proc/sys/kernel/panic': 'EACCES',
		'/proc/sys/kernel/hostname': 'EACCES', '/proc/sys/vm/panic_on_oom': 'EACCES',
		'/proc/sys/fs/suid_dumpable': 'EACCES', '/proc/sys/net/ipv4/ip_forward': 'EACCES',
		'/proc/sys/vm/drop_caches': 'EACCES', '/proc/sys/kernel/ns_last_pid': 'EPERM',
	}),
	'ids cannot be mapped again': writes({ '/proc/self/uid_map': 'EPERM',
		'/proc/self/gid_map': 'EPERM', '/proc/self/setgroups': 'EACCES' }),
	'masked files of /proc are absent or empty': [
		'for f in kcore keys timer_list sysrq-trigger; do [ ! -e /proc/$f ] || ' +
			'[ "$(stat -c %t:%T /proc/$f)" = 1:3 ] || echo $f; done; ' +
			'for d in acpi scsi; do ls -A /proc/$d 2>/dev/null; done; :', ''],
	'no core dump: 1 byte, where a core_pattern with a pipe is not even started': [
		"awk '/core file/{print $5, $6}' /proc/self/limits", '1 1'],
	'no release_agent, no cgroup, no /sys': [
		'find / -name release_agent 2>/dev/null; ls -A /sys; grep -c cgroup /proc/mounts', '0'],
	'addresses of the kernel': ["awk '$1 !~ /^0*$/' /proc/kallsyms | wc -l", '0'],
	'kernel log': ['dmesg 2>&1 | grep -ci "not permitted"', '1'],

	'/dev cannot be changed': [
		'rm /dev/null; ln -s /proc/sys /dev/x; mv /dev/null /tmp; mkdir /dev/d; ' +
			'chmod 777 /dev/null; ln -sfn / /dev/fd; :',
		"rm: cannot remove '/dev/null': Read-only file system\n" +
			"ln: failed to create symbolic link '/dev/x': Read-only file system\n" +
			"mv: cannot create special file '/tmp/null': Operation not permitted\n" +
			"mkdir: cannot create directory ‘/dev/d’: Read-only file system\n" +
			"chmod: changing permissions of '/dev/null': Read-only file system\n" +
			"ln: failed to create symbolic link '/dev/fd': Read-only file system"],
	'/dev holds these devices and no other': [
		'find /dev -type b -o -type c ! -path "/dev/pts/*" | sort | xargs',
		'/dev/full /dev/null /dev/random /dev/tty /dev/urandom /dev/zero'],
	'a device file of an upper would not open': ["awk '$5 == \"/workspace\"{print $6}' " +
		"/proc/self/mountinfo | tr , '\\n' | grep -E 'nodev|nosuid' | sort | xargs", 'nodev nosuid'],
	'everything outside the private places is read-only': [
		'for d in / /usr /usr/bin /etc /opt /dev /dev/pts /proc /proc/self /sys /var /home /mnt; ' +
			'do (: >$d/sbx) 2>/dev/null && echo $d; done; :', ''],
	'files of the host': ['(: >>/etc/passwd) 2>&1 | grep -cE "Read-only|denied"', '1'],

	'passwords and keys of the host': [
		'for f in /etc/shadow /etc/gshadow /etc/ssh/ssh_host_*_key /etc/ssl/private/*; do ' +
			'[ ! -r "$f" ] || head -c 1 "$f" 2>/dev/null; done', ''],
	"root's home is empty": ['ls -A /root /home /srv /mnt', '/home:\n\n/mnt:\n\n/root:\n\n/srv:'],
	'nothing listens for administrators': [
		'ls -d /run/docker.sock /run/systemd /run/dbus /var/lib /boot /media 2>/dev/null; ls -A /run',
		'/var/lib'],

	'setuid programs, own ones and those of the host': [
		`cp /usr/bin/id /tmp/myid; chmod 6755 /tmp/myid; ${AS_USER} /tmp/myid -u; ` +
			`${AS_USER} su -c id root </dev/null >/dev/null 2>&1 || echo refused`,
		'1000\nrefused'],
	'capabilities of files': [
		`cp /usr/bin/grep /tmp/g; setfattr -n security.capability -v ` +
			`0x0100000202000000000000000000000000000000 /tmp/g; ` +
			`${AS_USER} /tmp/g CapEff /proc/self/status | tr '\\t' ' '`,
		`CapEff: ${NONE}`],
	'limits go down only': ['ulimit -Hn 2000000 2>&1 | grep -c "not permitted"', '1'],
	'the out-of-memory killer is not sent to others': [
		'(echo -1000 >/proc/self/oom_score_adj) 2>&1 | grep -c denied', '1'],
	'signals to init are not felt': [
		'kill -9 1; kill -STOP 1; kill -SEGV 1; kill -HUP 1; ' +
			// asleep, or just at work: neither gone nor stopped
			"awk '/^State/{print $2}' /proc/1/status | tr R S", 'S'],
	'other networks': [
		'ls /sys/class/net 2>/dev/null; tail -n +3 /proc/net/dev | cut -d: -f1 | xargs; ' +
			'/tmp/tool connect-tcp 192.0.2.1 80; /tmp/tool connect-tcp 169.254.169.254 80',
		'lo\nENETUNREACH\nENETUNREACH'],
};

test('walls around a session', { skip: needs('gcc', 'setpriv', 'setfattr') }, async (t) => {
	const arena = await Arena.make(t);
	const session = await arena.session(await arena.sandbox('walls'));
	for (const [wall, [cmd, expected]] of Object.entries(rows))
		await t.test(wall, () => session.expect(cmd, expected));

	await t.test('the state directory and its name are not to be seen', async () => {
		const { dir } = arena.state;
		await session.expect(`ls -d ${dir} ${dir}/state 2>/dev/null; (cat /proc/self/mountinfo; ` +
			`env) | grep -cF ${dir}`, '0');
	});

	await t.test('a secret that only root of the host may read', async () => {
		const secret = '/etc/sbx-escape-test'; // where the session sees the host's own file
		t.after(() => rm(secret, { force: true }));
		await writeFile(secret, 'SECRET\n', { mode: 0o600, flag: 'wx' });
		await session.expect(`ls ${secret}; cat ${secret} 2>&1 | grep -o denied`, `${secret}\ndenied`);
	});

	await t.test('the host sees ids of nobody, another range for each sandbox', async () => {
		const other = await arena.session(await arena.sandbox('walls-2'));
		const ranges = [await idRange(session, `${process.pid}1`),
			await idRange(other, `${process.pid}2`)];
		assert.ok(ranges.every((range) => range > 0), `${ranges}`);
		assert.notEqual(ranges[0], ranges[1]);
	});
});

/** Which 65,536 ids of the host a session's root is in. The digits tell its process from others. */
async function idRange(session, digits) {
	const marker = `86400.${digits}`;
	await session.leave(`sleep ${marker}`);
	const pid = await until(() => processWith(marker), 'a process of the session');
	const ids = readFileSync(`/proc/${pid}/status`, 'utf8').match(/^Uid:\t(.*)$/m)[1];
	assert.match(ids, /^(\d+)\t\1\t\1\t\1$/);
	return Math.floor(Number.parseInt(ids, 10) / 65536);
}

/** The pid, on the host, of the sleep with this argument. */
function processWith(argument) {
	return readdirSync('/proc').find((name) => {
		if (!/^\d+$/.test(name)) return false;
		try {
			return readFileSync(`/proc/${name}/cmdline`, 'utf8') === `sleep\0${argument}\0`;
		} catch {
			return false; // ended meanwhile
		}
	});
}
