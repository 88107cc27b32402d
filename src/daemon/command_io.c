/* SPDX-License-Identifier: MIT */
/*
 * The terminal's master. We also hold its slave: without it every moment in which the command has
 * the terminal closed would look like its end (EIO) and could not be told from one by epoll.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "command.h"

#define READ_CHUNK (64u << 10)

/* N_TTY keeps one line of at most 4096 bytes with its end in canonical mode and drops the rest
 * silently (termios(3), "Canonical and noncanonical mode"). */
#define CANONICAL_LINE_MAX 4095

/* Bytes read, 0 when there is nothing now, -errno (-EIO: every slave is closed). */
static ssize_t read_some(struct command *command)
{
	char chunk[READ_CHUNK];
	ssize_t n = read(command->master_fd, chunk, sizeof(chunk));
	struct sbx_err err = SBX_ERR_INIT;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EIO;
	if (sbx_transcript_append(command->transcript, chunk, (size_t)n, &err) < 0)
		daemon_log("transcript of %s: %s", command->id, err.message);
	return n;
}

static void flush_stdin(struct command *command)
{
	while (command->unwritten.size) {
		ssize_t n =
			write(command->master_fd, command->unwritten.data, command->unwritten.size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break; /* full: EPOLLOUT comes when it is read */
		command->n_written += (uint64_t)n;
		sbx_buf_consume(&command->unwritten, (size_t)n);
	}
	(void)sbx_watch_set(command->master_watch,
		EPOLLIN | (command->unwritten.size ? (uint32_t)EPOLLOUT : 0));
}

static void on_master(void *data, uint32_t events)
{
	struct command *command = data;

	if (events & EPOLLIN)
		(void)read_some(command); /* one chunk: a flood must not starve the others */
	if (events & EPOLLOUT)
		flush_stdin(command);
	if ((events & (EPOLLHUP | EPOLLERR)) && !(events & EPOLLIN))
		sbx_watch_free(sbx_take(&command->master_watch));
	command_wake(command);
}

int command_open_terminal(struct command *command, int master_fd)
{
	int flags = fcntl(master_fd, F_GETFL);

	command->master_fd = master_fd;
	if (flags < 0 || fcntl(master_fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	command->slave_fd = ioctl(master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (command->slave_fd < 0)
		return -errno;
	return sbx_watch_new(command->daemon->loop, master_fd, EPOLLIN, on_master, command,
		&command->master_watch);
}

void command_close_terminal(struct command *command)
{
	sbx_watch_free(sbx_take(&command->master_watch));
	sbx_fd_close(&command->slave_fd);
	sbx_fd_close(&command->master_fd);
	sbx_buf_done(&command->unwritten);
}

void command_drain(struct command *command)
{
	if (command->master_fd < 0)
		return;
	/* read(2) of a master waits for the line discipline's queued work before it says EAGAIN,
	 * so nothing that was written before the exit is still on its way (n_tty_read) */
	while (read_some(command) > 0)
		;
	command_close_terminal(command);
}

/* In canonical mode no line may be longer than the terminal keeps. */
static int check_lines(struct command *command, const char *bytes, size_t size, struct sbx_err *err)
{
	struct termios termios;
	size_t length = 0;

	if (tcgetattr(command->master_fd, &termios) < 0 || !(termios.c_lflag & ICANON))
		return 0;
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] == '\n' || bytes[i] == '\r' ||
			(unsigned char)bytes[i] == termios.c_cc[VEOF])
			length = 0;
		else if (++length > CANONICAL_LINE_MAX)
			return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
				"stdin has a line longer than %d bytes, which the terminal would "
				"cut "
				"silently; nothing was written: use shorter lines, or file_write "
				"and "
				"a redirection",
				CANONICAL_LINE_MAX);
	}
	return 0;
}

int command_write(struct command *command, const char *bytes, size_t size, struct sbx_err *err)
{
	int r;

	if (command->unwritten.size + size > COMMAND_STDIN_MAX)
		return sbx_err_kind(err, SBX_KIND_BUSY, EAGAIN,
			"stdin of %s already holds %zu bytes that the command has not read (limit "
			"%u); nothing was written",
			command->id, command->unwritten.size, COMMAND_STDIN_MAX);
	r = check_lines(command, bytes, size, err);
	if (r < 0)
		return r;
	r = sbx_buf_append(&command->unwritten, bytes, size);
	if (r < 0)
		return sbx_err_set(err, -r, "keep stdin of %s: %m", command->id);
	command->n_queued += size;
	if (memchr(bytes, 0x03, size))
		command->interrupted = true; /* whether it acts on it decides its exit status */
	if (command->master_watch)
		flush_stdin(command);
	return 0;
}

void command_drop_unwritten(struct command *command)
{
	sbx_buf_clear(&command->unwritten);
	command->n_queued = command->n_written;
	if (command->master_watch)
		flush_stdin(command);
}
