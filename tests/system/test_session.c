/* SPDX-License-Identifier: MIT */
/* What a command finds in a session, and what it leaves. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "live.h"
#include "sbx/fs.h"

static struct live live;

static void set_up(void)
{
	live_start(&live, NULL);
}

static void tear_down(void)
{
	live_done(&live);
}

static struct live_command start(struct live_session *s, const char *text)
{
	return live_command_start(s, text, strlen(text));
}

TestSuite(session, .init = set_up, .fini = tear_down);

Test(session, a_command_runs_and_its_status_comes_back)
{
	SBX_BUF struct sbx_buf output = SBX_BUF_INIT;
	struct live_session s;
	int status;

	live_open(&live, &s, 0, "ws_a");
	live_expect(&s, "true", "");
	live_expect(&s, "echo out; echo err >&2", "out\nerr\n");
	status = live_exec(&s, "printf 'no newline'; exit 7", &output);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	cr_assert_str_eq(output.data, "no newline");
	status = live_exec(&s, "kill -9 $$", &output);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	live_drop(&s);
}

Test(session, a_written_file_lands_in_the_upper_as_in_session_root_wrote_it)
{
	struct live_session s;
	struct stat st;
	char path[256];

	live_open(&live, &s, 0, "ws_a");
	live_expect(&s, "echo x >f; mkdir d; chmod 750 d; chown 1000:1001 d; ls | wc -l", "2\n");
	live_drop(&s);
	live_upper_path(&s, "f", path);
	cr_assert_eq(lstat(path, &st), 0);
	cr_assert(st.st_uid == 0 && st.st_gid == 0 && (st.st_mode & 07777) == 0644);
	live_upper_path(&s, "d", path);
	cr_assert_eq(lstat(path, &st), 0);
	cr_assert(st.st_uid == 1000 && st.st_gid == 1001 && (st.st_mode & 07777) == 0750);
}

Test(session, sessions_do_not_see_each_other)
{
	struct live_session a, b;

	live_open(&live, &a, 0, "ws_a");
	live_open(&live, &b, 1, "ws_b");
	live_expect(
		&a, "echo a >f; echo t >/tmp/t; echo s >/dev/shm/s; sleep 100 & echo ok", "ok\n");
	live_expect(&b,
		"find . /tmp /dev/shm /run /var/tmp /root -mindepth 1; ps -eo comm= | grep -c "
		"sleep || :",
		"0\n");
	live_drop(&a);
	live_drop(&b);
}

Test(session, a_lower_directory_can_be_renamed)
{
	SBX_CLOSE int tree = live_layer(&live, 1);
	struct live_session s;

	sbx_fd_close(&(int){openat(tree, "top", O_CREAT | O_WRONLY, 0644)});
	cr_assert_eq(mkdirat(tree, "old", 0755), 0);
	cr_assert_eq(sbx_fs_write_at(tree, "old/f", 0644, "text\n", 5, 0), 0);
	live_prepare(&live, &s, 0, "ws_a", (const uint32_t[]){0, 1}, 2);
	live_run(&s);
	live_expect(&s, "perl -e 'rename(\"old\", \"new\") or die $!' && cat new/f; ls | xargs",
		"text\nnew top\n");
	live_drop(&s);
}

Test(session, upper_layers_cover_lower_ones)
{
	SBX_CLOSE int below = live_layer(&live, 1), above = live_layer(&live, 2);
	struct live_session s;

	cr_assert_eq(sbx_fs_write_at(below, "f", 0644, "below\n", 6, 0), 0);
	cr_assert_eq(sbx_fs_write_at(below, "g", 0644, "below\n", 6, 0), 0);
	cr_assert_eq(sbx_fs_write_at(above, "f", 0644, "above\n", 6, 0), 0);
	live_prepare(&live, &s, 0, "ws_a", (const uint32_t[]){1, 2}, 2);
	live_run(&s);
	live_expect(&s, "cat f g", "above\nbelow\n");
	live_drop(&s);
}

/* What a command sees of its surroundings, one row each. */
static const struct {
	const char *text;
	const char *output;
} facts[] = {
	{"pwd", "/workspace\n"},
	{"id -u; id -g; id -G", "0\n0\n0\n"},
	{"hostname", "sbox_live\n"},
	{"tty", "/dev/pts/0\n"},
	{"stty size", "24 80\n"},
	{"test -t 0 && test -t 1 && test -t 2 && echo yes", "yes\n"},
	{"stty -a | tr ' ' '\\n' | grep -xE -- '-?(echo|onlcr|isig|icanon|ixon|iutf8)' | sort | "
	 "xargs",
		"-echo -ixon -onlcr icanon isig iutf8\n"},
	{"echo $TERM $NO_COLOR $PAGER $GIT_PAGER $GIT_OPTIONAL_LOCKS $LANG $HOME $USER $SHELL",
		"dumb 1 cat cat 0 C.UTF-8 /root root /bin/bash\n"},
	{"umask; ulimit -Sn; ulimit -c", "0022\n16384\n0\n"},
	{"ls -l /proc/self/fd | awk 'NR>1{print $9}' | xargs", "0 1 2 3\n"},
	{"readlink /proc/$$/fd/* | sort -u | head -1; readlink /proc/$$/cwd /proc/$$/root",
		"/dev/pts/0\n/workspace\n/\n"},
	{"cat /proc/1/comm; ps -o pid= -p 1 | xargs", "sbx-init\n1\n"},
	{"stat -c %a /tmp /var/tmp /run /dev/shm /root | xargs", "1777 1777 755 1777 700\n"},
	{"stat -f -c %T /tmp /var/tmp /run /dev/shm /root /workspace | xargs",
		"tmpfs tmpfs tmpfs tmpfs tmpfs overlayfs\n"},
	{"ls /dev | xargs",
		"fd full null ptmx pts random shm stderr stdin stdout tty urandom zero\n"},
	{"echo x >/dev/null; head -c 3 /dev/zero | wc -c; head -c 5 /dev/urandom | wc -c",
		"3\n5\n"},
	{"echo hi >/dev/tty; echo out >/dev/stdout; cat </dev/fd/0 </dev/null", "hi\nout\n"},
	{"(echo x >/dev/full) 2>&1 | grep -c 'No space left'", "1\n"},
	{"getent hosts localhost | wc -l; getent ahosts localhost | awk '{print $1}' | sort -u",
		"1\n127.0.0.1\n::1\n"},
	{"cat /sys/class/net/lo/operstate 2>&1 | wc -l; ls -A /sys | wc -l", "1\n0\n"},
	{"grep -c ^ /proc/net/dev; awk '/lo:/{print $1}' /proc/net/dev", "3\nlo:\n"},
	{"echo 'a!b' \"x!\" '\\n' $((1+1))", "a!b x! \\n 2\n"},
	{"script -qc 'tty' /dev/null </dev/null | tr -d '\\r'", "/dev/pts/1\n"},
};

Test(session, a_command_finds_what_it_expects)
{
	struct live_session s;

	live_open(&live, &s, 0, "ws_a");
	for (size_t i = 0; i < SBX_N_ELEMENTS(facts); i++)
		live_expect(&s, facts[i].text, facts[i].output);
	live_drop(&s);
}

Test(session, servers_on_localhost_answer_on_any_port)
{
	struct live_session s;

	live_open(&live, &s, 0, "ws_a");
	live_expect(&s,
		"perl -MIO::Socket::INET -e '"
		"$l = IO::Socket::INET->new(LocalAddr => \"127.0.0.1:80\", Listen => 1) or die $!;"
		"if (!fork) { $c = $l->accept; print $c \"hello\\n\"; exit }"
		"$c = IO::Socket::INET->new(\"127.0.0.1:80\") or die $!; print <$c>'",
		"hello\n");
	live_drop(&s);
}

Test(session, control_characters_act_as_on_a_terminal)
{
	SBX_BUF struct sbx_buf output = SBX_BUF_INIT;
	struct live_command c;
	struct live_session s;
	int status;

	live_open(&live, &s, 0, "ws_a");
	c = start(&s, "sleep 100");
	/* at once: the terminal is the shell's before STARTED is sent */
	cr_assert_eq(write(c.master_fd, "\003", 1), 1);
	status = live_command_finish(&s, &c, &output);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT, "%#x", (unsigned int)status);

	c = start(&s, "cat; echo end");
	cr_assert_eq(write(c.master_fd, "line\n\004", 6), 6);
	sbx_buf_clear(&output);
	status = live_command_finish(&s, &c, &output);
	cr_assert_eq(status, 0);
	cr_assert_str_eq(output.data, "line\nend\n");

	c = start(&s, "trap 'echo INT; exit 5' INT; echo go; while :; do sleep 1; done");
	live_command_expect(&c, "go\n");
	cr_assert_eq(write(c.master_fd, "\003", 1), 1);
	sbx_buf_clear(&output);
	status = live_command_finish(&s, &c, &output);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 5);
	live_drop(&s);
}

/* text of size bytes that ends in the given tail: a long comment before it */
static char *long_text(size_t size, const char *tail)
{
	char *text = malloc(size + 1);
	size_t n = strlen(tail);

	cr_assert_not_null(text);
	memset(text, '#', size);
	memcpy(text + size - n, tail, n + 1);
	return text;
}

Test(session, command_texts_of_any_length_reach_the_shell)
{
	static const size_t sizes[] = {100, SBX_INIT_ARG_MAX, SBX_INIT_ARG_MAX + 1, 5000000};
	struct live_session s;

	live_open(&live, &s, 0, "ws_a");
	for (size_t i = 0; i < SBX_N_ELEMENTS(sizes); i++) {
		SBX_FREE char *text = long_text(sizes[i], "\nread x; echo \"$x done\"");
		SBX_BUF struct sbx_buf output = SBX_BUF_INIT;
		struct live_command c = live_command_start(&s, text, sizes[i]);

		cr_assert_eq(write(c.master_fd, "typed\n", 6), 6);
		cr_expect_eq(live_command_finish(&s, &c, &output), 0);
		cr_expect_str_eq(
			output.data, "typed done\n", "%zu bytes: %.100s", sizes[i], output.data);
	}
	live_drop(&s);
}

Test(session, bad_starts_are_refused_by_what_is_wrong)
{
	struct live_session s;
	struct sbx_init_message m;
	int fd;

	live_open(&live, &s, 0, "ws_a");
	live_send_start(&s, "a\0b", 3);
	m = live_message(&s, &fd);
	cr_expect_eq(m.code, -EINVAL);
	cr_expect_str_eq(m.detail, "the command contains a NUL byte");
	m = (struct sbx_init_message){.op = SBX_INIT_START, .command = 99};
	cr_assert_eq(sbx_init_send(s.control_fd, &m, -EBADF), 0);
	m = live_message(&s, &fd);
	cr_expect_eq(m.code, -EINVAL);
	cr_expect_eq(m.command, 99);
	live_expect(&s, "echo goes on", "goes on\n");
	live_drop(&s);
}

Test(session, several_commands_run_at_once)
{
	enum { N = 20 };
	struct live_command c[N];
	struct live_session s;

	live_open(&live, &s, 0, "ws_a");
	for (int i = 0; i < N; i++)
		c[i] = start(&s, "read x; echo $x");
	for (int i = N - 1; i >= 0; i--) {
		SBX_BUF struct sbx_buf output = SBX_BUF_INIT;

		cr_assert_eq(write(c[i].master_fd, "hi\n", 3), 3);
		cr_expect_eq(live_command_finish(&s, &c[i], &output), 0);
		cr_expect_str_eq(output.data, "hi\n");
	}
	live_drop(&s);
}

Test(session, orphans_are_reaped)
{
	struct live_session s;

	live_open(&live, &s, 0, "ws_a");
	live_expect(&s,
		"for i in $(seq 100); do (sleep 0.05 &); done; sleep 0.5; ps -eo stat= | grep -c "
		"^Z || :",
		"0\n");
	live_drop(&s);
}

Test(session, a_signal_reaches_the_commands_tree_and_nothing_else)
{
	static const char text[] = "(sleep 1000 &); setsid sh -c 'sleep 1001; :' & echo up; wait";
	SBX_BUF struct sbx_buf output = SBX_BUF_INIT;
	struct live_command c, other;
	struct live_session s;
	struct sbx_init_message m = {.op = SBX_INIT_SIGNAL, .code = SIGTERM};
	int status;

	live_open(&live, &s, 0, "ws_a");
	other = start(&s, "read x; echo $x");
	c = start(&s, text);
	live_command_expect(&c, "up\n");
	m.command = c.number;
	cr_assert_eq(sbx_init_send(s.control_fd, &m, -EBADF), 0);
	status = live_command_finish(&s, &c, &output);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	cr_assert_eq(write(other.master_fd, "lives\n", 6), 6);
	sbx_buf_clear(&output);
	cr_assert_eq(live_command_finish(&s, &other, &output), 0);
	cr_assert_str_eq(output.data, "lives\n");
	live_expect(&s, "ps -eo args= | grep -c '[s]leep 100' || :", "0\n");
	live_drop(&s);
}

/* Reads messages until this one comes; live_message() skips EMPTY. */
static void await_message(struct live_session *s, uint32_t op, uint32_t command)
{
	struct pollfd ready = {.fd = s->control_fd, .events = POLLIN};
	struct sbx_init_message m;

	do {
		SBX_CLOSE int fd = -EBADF;

		cr_assert_eq(poll(&ready, 1, LIVE_TIMEOUT_MS), 1, "no message %u", op);
		cr_assert_eq(sbx_init_read(s->control_fd, &m, &fd), 1, "init is gone");
	} while (m.op != op || m.command != command);
}

Test(session, what_ignores_a_signal_and_loses_its_shell_is_met_by_the_next)
{
	static const char text[] =
		"setsid sh -c \"trap '' TERM; echo up; while :; do sleep 0.01; done\" & wait";
	struct sbx_init_message m = {.op = SBX_INIT_SIGNAL, .code = SIGTERM};
	SBX_BUF struct sbx_buf output = SBX_BUF_INIT;
	struct live_command c;
	struct live_session s;
	int status;

	live_open(&live, &s, 0, "ws_a");
	c = start(&s, text);
	live_command_expect(&c, "up\n");
	m.command = c.number;
	cr_assert_eq(sbx_init_send(s.control_fd, &m, -EBADF), 0);
	status = live_command_finish(&s, &c, &output);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	live_expect(&s, "ps -eo args= | grep -c '[t]rap' || :", "1\n");
	m.code = SIGKILL;
	cr_assert_eq(sbx_init_send(s.control_fd, &m, -EBADF), 0);
	live_expect(&s, "ps -eo args= | grep -c '[t]rap' || :", "0\n");
	live_drop(&s);
}

Test(session, init_tells_when_a_signalled_tree_is_gone)
{
	static const char text[] = "setsid sh -c \"trap 'sleep 0.2; exit' TERM; echo up;"
				   "while :; do sleep 0.01; done\" & wait";
	struct sbx_init_message m = {.op = SBX_INIT_SIGNAL, .code = SIGTERM};
	struct live_command c, other;
	struct live_session s;

	live_open(&live, &s, 0, "ws_a");
	other = start(&s, "read x");
	c = start(&s, text);
	live_command_expect(&c, "up\n");
	m.command = c.number;
	cr_assert_eq(sbx_init_send(s.control_fd, &m, -EBADF), 0);
	await_message(&s, SBX_INIT_EXITED, c.number);
	await_message(&s, SBX_INIT_EMPTY, c.number);
	cr_assert_eq(write(other.master_fd, "\n", 1), 1);
	await_message(&s, SBX_INIT_EXITED, other.number);
	await_message(&s, SBX_INIT_EMPTY, 0);
	sbx_fd_close(&c.master_fd);
	sbx_fd_close(&other.master_fd);
	live_drop(&s);
}

Test(session, background_children_outlive_their_shell)
{
	SBX_BUF struct sbx_buf output = SBX_BUF_INIT;
	struct live_command c;
	struct live_session s;

	live_open(&live, &s, 0, "ws_a");
	c = start(&s, "sleep 1000 & :");
	cr_assert_eq(live_command_finish(&s, &c, &output), 0);
	live_expect(&s, "ps -eo args= | grep -c '[s]leep 1000' || :", "1\n");
	live_drop(&s);
}

Test(session, a_signal_to_all_ends_all_but_init)
{
	SBX_BUF struct sbx_buf output = SBX_BUF_INIT;
	struct sbx_init_message m = {.op = SBX_INIT_SIGNAL, .code = SIGKILL};
	struct live_command c;
	struct live_session s;
	int status;

	live_open(&live, &s, 0, "ws_a");
	c = start(&s, "sleep 1000");
	cr_assert_eq(sbx_init_send(s.control_fd, &m, -EBADF), 0);
	status = live_command_finish(&s, &c, &output);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	live_expect(&s, "echo goes on", "goes on\n");
	live_drop(&s);
}

/* Sends until the socket is full: how many. */
static int flood(struct live_session *s, int max)
{
	SBX_CLOSE int text = memfd_create("text", MFD_CLOEXEC);
	int n = 0, flags = fcntl(s->control_fd, F_GETFL);

	cr_assert_eq(write(text, ":", 1), 1);
	cr_assert_eq(fcntl(s->control_fd, F_SETFL, flags | O_NONBLOCK), 0);
	while (n < max) {
		struct sbx_init_message m = {
			.op = SBX_INIT_START, .command = (uint32_t)n + 1, .text_size = 1};
		int r = sbx_init_send(s->control_fd, &m, text);

		if (r == -EAGAIN)
			break;
		cr_assert_eq(r, 0);
		n++;
	}
	cr_assert_eq(fcntl(s->control_fd, F_SETFL, flags), 0);
	return n;
}

Test(session, a_slow_reader_loses_no_message)
{
	enum { N = SBX_INIT_COMMANDS_MAX };
	int masters[N + 1], n_sent, n_exited = 0;
	struct live_session s;

	/* more answers than the socket takes, and none is read until all commands are sent */
	live_open(&live, &s, 0, "ws_a");
	n_sent = flood(&s, N);
	cr_assert_geq(n_sent, 100);
	for (int i = 1; i <= n_sent; i++)
		masters[i] = -EBADF;
	while (n_exited < n_sent) {
		int fd;
		struct sbx_init_message m = live_message(&s, &fd);

		cr_assert(m.command >= 1 && m.command <= (uint32_t)n_sent);
		cr_assert_eq(m.code, 0, "%s", m.detail);
		if (m.op == SBX_INIT_STARTED)
			masters[m.command] = fd; /* closing it would hang the command up */
		else
			n_exited++;
	}
	for (int i = 1; i <= n_sent; i++) {
		cr_expect_geq(masters[i], 0, "command %d", i);
		sbx_fd_close(&masters[i]);
	}
	live_drop(&s);
}

Test(session, no_byte_of_output_is_lost)
{
	struct live_session s;

	live_open(&live, &s, 0, "ws_a");
	for (int i = 0; i < 50; i++) {
		SBX_BUF struct sbx_buf output = SBX_BUF_INIT;

		cr_assert_eq(live_exec(&s, "seq 1 5000", &output), 0);
		cr_assert_eq(output.size, 23893, "%zu bytes", output.size);
		cr_assert_str_eq(output.data + output.size - 5, "5000\n");
	}
	live_drop(&s);
}

Test(session, network_host_shares_the_hosts_network)
{
	static struct live shared;
	char expected[64] = "";
	struct live_session s;

	cr_assert_gt(readlink("/proc/self/ns/net", expected, sizeof(expected) - 2), 0);
	(void)strcat(expected, "\n"); /* there is room for it */
	live_start(&shared, &(struct sbx_spawner_config){.network = SBX_NETWORK_HOST});
	live_open(&shared, &s, 0, "ws_a");
	live_expect(&s, "readlink /proc/self/ns/net", expected);
	live_drop(&s);
	live_done(&shared);
}
