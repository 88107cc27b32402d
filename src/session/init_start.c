/* SPDX-License-Identifier: MIT */
/*
 * Starting a command: a terminal of the session's own devpts, then a keeper, then a shell on the
 * terminal, by clone(CLONE_VM|CLONE_VFORK): the child borrows the keeper's memory until it has
 * called execve, so nothing is copied, and a failure before that is simply seen in memory.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "init.h"

#define STACK_SIZE (64u << 10)
#define TEXT_FD    3 /* where a text too long for an argument is read from; stays open */
#define TEXT_PATH  "/proc/self/fd/3"
#define FIRST_FD   10 /* ours are above all that the child sets up */

/* Nobody sits at this terminal: nothing may page, ask, colour or edit. */
static const char *const environment[] = {
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"HOME=/root",
	"USER=root",
	"LOGNAME=root",
	"SHELL=/bin/bash",
	"LANG=C.UTF-8",
	"TERM=dumb",
	"NO_COLOR=1",
	"PAGER=cat",
	"GIT_PAGER=cat",
	"MANPAGER=cat",
	"SYSTEMD_PAGER=",
	"GIT_EDITOR=:", /* takes the message as it is, instead of waiting in an editor */
	"GIT_TERMINAL_PROMPT=0",
	"GIT_OPTIONAL_LOCKS=0", /* or "git status" rewrites the index, which would be published */
	"DEBIAN_FRONTEND=noninteractive",
	NULL,
};

struct shell {
	const char *path;
	const char *argv[6];
};

struct child {
	const struct shell *shells; /* tried in order */
	size_t n_shells;
	int tty_fd;
	int text_fd; /* -EBADF: the text is an argument */
	struct sbx_init_report *report;
	/* written by the child in the memory that it shares with us */
	volatile int code;
	const char *volatile step;
};

static int fail_in_child(struct child *c, const char *step)
{
	c->code = errno;
	c->step = step;
	return 127;
}

/* Becomes the leader of a session of its own on the terminal, whose foreground it is at once. */
static int run_child(void *data)
{
	struct child *c = data;
	sigset_t none;

	c->report->shell = getpid();
	if (setsid() < 0 || ioctl(c->tty_fd, TIOCSCTTY, 0) < 0)
		return fail_in_child(c, "take the terminal");
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (dup2(c->tty_fd, fd) < 0)
			return fail_in_child(c, "dup2");
	if (c->text_fd >= 0 && dup2(c->text_fd, TEXT_FD) < 0)
		return fail_in_child(c, "dup2");
	/* The end of the shell, which leads the terminal session, sends SIGHUP to what it started
	 * (disassociate_ctty()): as under nohup(1), background children live on. */
	(void)signal(SIGHUP, SIG_IGN);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL); /* cannot fail with a valid set */
	for (size_t i = 0; i < c->n_shells; i++) {
		(void)execve(c->shells[i].path, (char **)(uintptr_t)c->shells[i].argv,
			(char **)(uintptr_t)environment);
		if (errno != ENOENT)
			break;
	}
	return fail_in_child(c, "start a shell");
}

static pid_t spawn_shell(void *data, struct sbx_err *err)
{
	static char stack[STACK_SIZE] __attribute__((aligned(16)));
	struct child *c = data;
	pid_t pid;

	pid = clone(run_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, c);
	if (pid < 0)
		return sbx_err_set(err, errno, "start a process: %m");
	if (!c->step)
		return pid;
	(void)waitpid(pid, NULL, 0); /* it has exited; its reason is in c */
	return sbx_err_set(err, c->code, "%s: %m", c->step);
}

/* Lines come out as they were written: "\n" stays "\n", input is not echoed into the output. */
static int set_modes(int tty_fd, struct sbx_err *err)
{
	struct termios t;

	if (tcgetattr(tty_fd, &t) < 0)
		return sbx_err_set(err, errno, "read the terminal's modes: %m");
	t.c_oflag &= ~(tcflag_t)ONLCR;
	t.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
	t.c_lflag |= ISIG | ICANON;
	t.c_iflag &= ~(tcflag_t)(IXON | IXOFF); /* a stray Ctrl-S must not stop it for good */
	t.c_iflag |= IUTF8;
	if (tcsetattr(tty_fd, TCSANOW, &t) < 0)
		return sbx_err_set(err, errno, "set the terminal's modes: %m");
	return 0;
}

static int lift(int *fd, struct sbx_err *err)
{
	int high = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST_FD);

	if (high < 0)
		return sbx_err_set(err, errno, "duplicate a descriptor: %m");
	sbx_fd_close(fd);
	*fd = high;
	return 0;
}

static int open_terminal(
	const struct sbx_init_start *start, int *ret_master, int *ret_tty, struct sbx_err *err)
{
	const struct winsize size = {.ws_row = start->rows, .ws_col = start->columns};
	SBX_CLOSE int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	SBX_CLOSE int tty = -EBADF;
	int unlock = 0, r;

	if (master < 0)
		return sbx_err_set(err, errno, "open a terminal: %m");
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0 || ioctl(master, TIOCSWINSZ, &size) < 0)
		return sbx_err_set(err, errno, "set up the terminal: %m");
	tty = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (tty < 0)
		return sbx_err_set(err, errno, "open the terminal's other end: %m");
	r = lift(&tty, err);
	if (r >= 0)
		r = set_modes(tty, err);
	if (r < 0)
		return r;
	*ret_master = sbx_fd_take(&master);
	*ret_tty = sbx_fd_take(&tty);
	return 0;
}

/* The text as a C string. It is valid until the next call. */
static int read_text(int fd, uint32_t size, const char **ret, struct sbx_err *err)
{
	static char text[SBX_INIT_ARG_MAX + 1];
	uint32_t got = 0;

	while (got < size) {
		ssize_t n = pread(fd, text + got, size - got, got);

		if (n <= 0)
			return sbx_err_set(err, n < 0 ? errno : EIO, "read the command: %m");
		got += (uint32_t)n;
	}
	text[size] = '\0';
	if (strlen(text) != size)
		return sbx_err_set(err, EINVAL, "the command contains a NUL byte");
	*ret = text;
	return 0;
}

/* A shell could write to its own script otherwise, and with it to sandboxd's memory. */
static int check_sealed(int fd, struct sbx_err *err)
{
	const int wanted = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & wanted) != wanted)
		return sbx_err_set(err, EINVAL, "the command's memfd is not sealed");
	return 0;
}

static int start_on(const struct sbx_init_start *start, int tty, int text_fd,
	struct sbx_init_report *report, pid_t *ret_keeper, struct sbx_err *err)
{
	const char *text = TEXT_PATH;
	bool as_argument = start->text_size <= SBX_INIT_ARG_MAX;
	int r = as_argument ? read_text(text_fd, start->text_size, &text, err)
			    : check_sealed(text_fd, err);
	const char *flag = as_argument ? "-c" : text;
	const char *after = as_argument ? text : NULL;
	const struct shell shells[] = {
		{"/bin/bash", {"bash", "--noprofile", "--norc", flag, after, NULL}},
		{"/bin/sh", {"sh", flag, after, NULL}},
	};
	struct child child = {
		.shells = shells,
		.n_shells = SBX_N_ELEMENTS(shells),
		.tty_fd = tty,
		.text_fd = as_argument ? -EBADF : text_fd,
		.report = report,
	};

	return r < 0 ? r : sbx_init_keep(spawn_shell, &child, report, ret_keeper, err);
}

int sbx_init_start(const struct sbx_init_start *start, struct sbx_init_report *report,
	int *ret_master, pid_t *ret_keeper, struct sbx_err *err)
{
	SBX_CLOSE int master = -EBADF, tty = -EBADF, text_fd = -EBADF;
	int r;

	if (start->text_fd < 0 || start->text_size > SBX_COMMAND_TEXT_MAX)
		return sbx_err_set(err, EINVAL, "a command without text, or one too long");
	text_fd = fcntl(start->text_fd, F_DUPFD_CLOEXEC, FIRST_FD);
	if (text_fd < 0)
		return sbx_err_set(err, errno, "duplicate the command's descriptor: %m");
	r = open_terminal(start, &master, &tty, err);
	if (r >= 0)
		r = start_on(start, tty, text_fd, report, ret_keeper, err);
	if (r < 0)
		return r;
	*ret_master = sbx_fd_take(&master);
	return 0;
}
