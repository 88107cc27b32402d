/* SPDX-License-Identifier: MIT */
/* What a command must not be able to do, asked as in-session root. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../unit/session/filter_cases.h"
#include "live.h"
#include "sbx/fs.h"

static struct live live;

/* This program is also the one that asks inside a session: copied into a layer and called with
 * this argument, it prints what differs from the table, instead of running tests. */
#define PROBE_ARGUMENT "--sbx-probe-filter"

__attribute__((constructor)) static void probe_filter(int argc, char **argv)
{
	if (argc != 2 || strcmp(argv[1], PROBE_ARGUMENT))
		return;
	for (size_t i = 0; i < FILTER_N_CASES; i++) {
		int got = filter_ask(&filter_cases[i]);

		if (got != filter_cases[i].want)
			printf("%s: %s, not %s\n", filter_cases[i].name, strerrorname_np(got),
				strerrorname_np(filter_cases[i].want));
	}
	printf("asked %zu\n", FILTER_N_CASES);
	(void)fflush(stdout); /* a terminal: line by line anyway */
	_exit(0);
}

static void set_up(void)
{
	live_start(&live, NULL);
}

static void tear_down(void)
{
	live_done(&live);
}

TestSuite(walls, .init = set_up, .fini = tear_down);

Test(walls, each_system_call_answers_as_listed_inside_a_session)
{
	SBX_CLOSE int tree = live_layer(&live, 1);
	SBX_BUF struct sbx_buf self = SBX_BUF_INIT;
	struct live_session s;
	char expected[64];

	cr_assert_eq(sbx_fs_read_at(AT_FDCWD, "/proc/self/exe", 256 << 20, &self), -ELOOP);
	self.size = 0;
	{
		SBX_CLOSE int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

		cr_assert_eq(sbx_fs_read_fd(exe, 256 << 20, &self), 0);
	}
	cr_assert_eq(sbx_fs_write_at(tree, "probe", 0755, self.data, self.size, 0), 0);
	(void)snprintf(expected, sizeof(expected), "asked %zu\n", FILTER_N_CASES);
	live_prepare(&live, &s, 0, "ws_a", (const uint32_t[]){1}, 1);
	live_run(&s);
	live_expect(&s, "./probe " PROBE_ARGUMENT, expected);
	live_drop(&s);
}

/* Capabilities in /proc/self/status: CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, FSETID 4, KILL 5,
 * SETGID 6, SETUID 7, SETPCAP 8, SYS_CHROOT 18, SETFCAP 31. */
#define KEPT "00000000800401fb"
#define NONE "0000000000000000"

static const struct {
	const char *attack;
	const char *text;
	const char *output;
} attacks[] = {
	{"capabilities are the keep-set", "grep ^Cap /proc/self/status | cut -f2 | xargs",
		KEPT " " KEPT " " KEPT " " KEPT " " NONE "\n"},
	{"init's as well", "grep ^Cap /proc/1/status | cut -f2 | xargs",
		KEPT " " KEPT " " KEPT " " KEPT " " NONE "\n"},
	{"no new privileges, filtered",
		"grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | cut -f2 | xargs", "1 2\n"},
	{"mount", "mount -t tmpfs t /mnt 2>&1 | grep -c denied", "1\n"},
	{"umount", "umount /tmp 2>&1 | grep -ciE 'denied|not permitted|must be superuser'", "1\n"},
	{"remount /usr writable", "mount -o remount,rw /usr 2>&1 | grep -c denied", "1\n"},
	{"write below the shared root",
		"for d in / /usr /etc /opt /dev /proc /sys /var /home; do "
		"(: >$d/x) 2>/dev/null && echo wrote $d; done; :",
		""},
	{"write to a file of the host", "(: >>/etc/passwd) 2>&1 | grep -cE 'Read-only|denied'",
		"1\n"},
	{"read the host's secrets", "cat /etc/shadow 2>&1 | grep -c denied", "1\n"},
	{"a device of one's own", "mknod d b 8 0 2>&1 | grep -c 'not permitted'", "1\n"},
	{"new user namespace", "unshare -Ur true 2>&1 | grep -c 'not permitted'", "1\n"},
	{"trace init",
		"cat /proc/1/maps /proc/1/environ 2>&1 | grep -c denied; "
		"ls /proc/1/fd 2>&1 | grep -c denied; readlink /proc/1/exe /proc/1/root "
		"/proc/1/cwd | wc -l",
		"2\n1\n0\n"},
	{"write init's memory", "(: >/proc/1/mem) 2>&1 | grep -c denied", "1\n"},
	{"init's command line tells nothing of the host", "tr '\\0' ' ' </proc/1/cmdline | xargs",
		"sbx-init\n"},
	{"kill init",
		"kill -9 1; kill -STOP 1; kill -SEGV 1; sleep 0.1; ps -o stat= -p 1 | cut -c1",
		"S\n"},
	{"renice init's limits", "prlimit --pid 1 --nofile=1:1 2>&1 | grep -ci 'not permitted'",
		"1\n"},
	{"kernel parameters",
		"(echo 1 >/proc/sys/kernel/panic) 2>&1 | grep -c denied; "
		"(echo x >/proc/sys/kernel/core_pattern) 2>&1 | grep -c denied; "
		"(echo 1 >/proc/sys/net/ipv4/ip_forward) 2>&1 | grep -c denied",
		"1\n1\n1\n"},
	{"masked files", "cat /proc/keys /proc/timer_list 2>/dev/null | wc -c", "0\n"},
	{"kernel log", "dmesg 2>&1 | grep -c 'not permitted'", "1\n"},
	{"raise a limit", "ulimit -Hn 2000000 2>&1 | grep -c 'not permitted'", "1\n"},
	{"chroot does not lead out",
		"perl -e 'mkdir \"c\"; chroot \"c\" or die; chdir \"..\" for 1..50; chroot \".\"; "
		"print -d \"/workspace\" && !-e \"/.dockerenv\" && -d \"/usr\" ? \"same\\n\" : "
		"\"other\\n\"'; rmdir c",
		"same\n"},
	{"the store is nowhere", "ls -d /layers /sessions /l /s /o 2>/dev/null | wc -l", "0\n"},
	{"other networks",
		"perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(PeerAddr => "
		"\"192.0.2.1:80\", "
		"Timeout => 5) ? \"reached\\n\" : \"$!\\n\"'",
		"Network is unreachable\n"},
	{"overlay marks are out of reach",
		"mkdir o; perl -e '($f, $n, $v) = (\"o\", \"trusted.overlay.opaque\", \"y\"); "
		"syscall(188, $f, $n, $v, 1, 0); print \"$!\\n\"'; rmdir o",
		"Operation not permitted\n"},
};

Test(walls, attacks_from_inside_are_refused)
{
	struct live_session s;

	live_open(&live, &s, 0, "ws_a");
	for (size_t i = 0; i < SBX_N_ELEMENTS(attacks); i++) {
		cr_log_info("%s", attacks[i].attack);
		live_expect(&s, attacks[i].text, attacks[i].output);
	}
	live_drop(&s);
}

Test(walls, setuid_programs_of_the_host_and_of_ones_own_are_dead)
{
	struct live_session s;

	live_open(&live, &s, 0, "ws_a");
	live_expect(&s,
		"cp /usr/bin/id myid; chmod 4755 myid; "
		"setpriv --reuid 1000 --clear-groups ./myid -u; "
		"setpriv --reuid 1000 --clear-groups su -c true root </dev/null 2>/dev/null && "
		"echo root; :",
		"1000\n");
	live_drop(&s);
}

Test(walls, kill_all_ends_only_the_own_session)
{
	SBX_BUF struct sbx_buf output = SBX_BUF_INIT;
	struct live_command other;
	struct live_session a, b;

	live_open(&live, &a, 0, "ws_a");
	live_open(&live, &b, 1, "ws_b");
	other = live_command_start(&b, "read x; echo $x", 15);
	(void)live_exec(&a, "sleep 1000 & kill -9 -1", &output);
	/* of a pipeline the programs would be seen before they are executed, or not yet */
	live_expect(
		&a, "ps -eo comm= >/tmp/ps; sort /tmp/ps | xargs", "bash ps sbx-init sbx-keeper\n");
	cr_assert_eq(write(other.master_fd, "lives\n", 6), 6);
	sbx_buf_clear(&output);
	cr_assert_eq(live_command_finish(&b, &other, &output), 0);
	cr_assert_str_eq(output.data, "lives\n");
	live_drop(&a);
	live_drop(&b);
}

/* The host's pid of init. */
static int host_pid(const struct live_session *s)
{
	char path[64], line[128];
	int pid = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", s->pidfd);
	f = fopen(path, "re");
	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Pid: %d", &pid) == 1)
			break;
	(void)fclose(f); /* only read from */
	cr_assert_gt(pid, 0);
	return pid;
}

static uid_t host_uid(const struct live_session *s)
{
	char path[64], line[128];
	unsigned int uid = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", host_pid(s));
	f = fopen(path, "re");
	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Uid: %u", &uid) == 1)
			break;
	(void)fclose(f); /* only read from */
	return uid;
}

/* What init may hold open, by the links in its /proc/pid/fd. */
static const char *const allowed_targets[] = {
	"/dev/null",                      /* its stdin, stdout, stderr: the session's own */
	"socket:",                        /* control */
	"anon_inode:[signalfd]", "/lock", /* of the test's state directory */
};

Test(walls, init_holds_nothing_of_the_host_open)
{
	struct live_session a, b;
	int n = 0;

	live_open(&live, &a, 0, "ws_a");
	live_open(&live, &b, 1, "ws_b"); /* forked while the spawner held the first one's */
	live_expect(&b, "true", "");
	for (int fd = 0; fd < 1024; fd++) {
		char path[64], target[256];
		bool known = false;
		ssize_t size;

		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", host_pid(&b), fd);
		size = readlink(path, target, sizeof(target) - 1);
		if (size < 0)
			continue;
		target[size] = '\0';
		n++;
		for (size_t i = 0; i < SBX_N_ELEMENTS(allowed_targets); i++)
			known = known || strstr(target, allowed_targets[i]);
		cr_expect(known, "descriptor %d is %s", fd, target);
	}
	cr_expect_eq(n, 6, "%d descriptors", n);
	live_drop(&a);
	live_drop(&b);
}

Test(walls, each_sandbox_has_host_ids_of_its_own)
{
	static struct live second;
	struct live_session a, b;

	live_start(&second, &(struct sbx_spawner_config){.id_base = LIVE_ID_BASE * 2});
	live_open(&live, &a, 0, "ws_a");
	live_open(&second, &b, 0, "ws_b");
	cr_expect_eq(host_uid(&a), LIVE_ID_BASE);
	cr_expect_eq(host_uid(&b), LIVE_ID_BASE * 2);
	live_drop(&a);
	live_drop(&b);
	live_done(&second);
}

Test(walls, terminals_and_shared_memory_have_limits)
{
	struct live_session s;

	live_open(&live, &s, 0, "ws_a");
	live_expect(&s, "head -c 100M /dev/zero >/dev/shm/x; stat -c %s /dev/shm/x; rm /dev/shm/x",
		"head: error writing 'standard output': No space left on device\n67108864\n");
	live_expect(&s, "awk '$2 == \"/dev/pts\"{print $4}' /proc/mounts | tr , '\\n' | grep max=",
		"max=512\n");
	live_drop(&s);
}
