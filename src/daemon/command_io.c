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

/* More than the kernel holds of what was printed and not read (TTYB_DEFAULT_MEM_LIMIT is 64 KiB,
 * and N_TTY has a page): reading so much is sure to read all that came before now. */
#define TERMINAL_BUFFER_MAX (256u << 10)

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

static void on_master(void *data, uint32_t events)
{
	struct command *command = data;

	if (events & EPOLLIN)
		(void)read_some(command); /* one chunk: a flood must not starve the others */
	if (events & EPOLLOUT)
		command_flush_stdin(command);
	if ((events & (EPOLLHUP | EPOLLERR)) && !(events & EPOLLIN)) {
		if (command->state == COMMAND_ENDED)
			command_close_terminal(command); /* nobody has it any more */
		else
			sbx_watch_free(sbx_take(&command->master_watch));
	}
	command_wake(command);
}

int command_open_terminal(struct command *command, int master_fd)
{
	int flags, r;

	/* init could send anything, a file without an end too: only a terminal is ever read */
	command->slave_fd = ioctl(master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (command->slave_fd < 0) {
		r = -errno;
		sbx_fd_close(&master_fd);
		return r;
	}
	command->master_fd = master_fd;
	flags = fcntl(master_fd, F_GETFL);
	if (flags < 0 || fcntl(master_fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		r = -errno;
		command_close_terminal(command); /* reading it could block */
		return r;
	}
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

void command_linger(struct command *command)
{
	ssize_t n = 1;

	if (command->master_fd < 0)
		return;
	sbx_fd_close(&command->slave_fd); /* now the end of the last other one shows */
	for (size_t taken = 0; n > 0 && taken < TERMINAL_BUFFER_MAX; taken += (size_t)n)
		n = read_some(command);
	if (n < 0)
		command_close_terminal(command);
	else
		command_drop_unwritten(command);
}
