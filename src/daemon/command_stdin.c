/* SPDX-License-Identifier: MIT */
/*
 * What is written to a command's stdin: the terminal's line discipline takes it, with what is
 * silent there made plain. N_TTY (drivers/tty/n_tty.c) holds 4096 bytes. In canonical mode it drops
 * what does not fit into one line without a word, so such a line is refused before anything of it
 * is written. With lines that nobody reads it is full: what comes then waits before it, control
 * characters too, so a character that sends a signal is made one here.
 */
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "command.h"

#define LINE_MAX_BYTES 4095 /* with the line's end it is N_TTY_BUF_SIZE */
#define NEARLY_FULL    4000 /* unread bytes from which on the next ones may have to wait */

static bool is_char(const struct termios *t, int index, char c)
{
	return t->c_cc[index] != _POSIX_VDISABLE && t->c_cc[index] == (cc_t)c;
}

/* The signal that a typed character sends; 0: none. */
static int signal_of(const struct termios *t, char c)
{
	static const struct {
		int index, sig;
	} chars[] = {{VINTR, SIGINT}, {VQUIT, SIGQUIT}, {VSUSP, SIGTSTP}};

	for (size_t i = 0; (t->c_lflag & ISIG) && i < SBX_N_ELEMENTS(chars); i++)
		if (is_char(t, chars[i].index, c))
			return chars[i].sig;
	return 0;
}

static bool ends_line(const struct termios *t, char c)
{
	if (c == '\r' && (t->c_iflag & ICRNL))
		return true;
	return c == '\n' || is_char(t, VEOF, c) || is_char(t, VEOL, c) || is_char(t, VEOL2, c) ||
	       is_char(t, VKILL, c) || (signal_of(t, c) && !(t->c_lflag & NOFLSH));
}

static void line_add(struct stdin_line *line, const struct termios *t, char c)
{
	if (line->quoted) {
		line->quoted = false;
		line->length++;
	} else if ((t->c_lflag & IEXTEN) && is_char(t, VLNEXT, c)) {
		line->quoted = true;
	} else if (ends_line(t, c)) {
		line->length = 0;
	} else if (is_char(t, VERASE, c)) {
		line->length -= line->length > 0;
	} else {
		line->length++;
	}
}

/* Follows the line that bytes go on with; refuses one that the terminal would cut. */
static int follow_lines(struct command *command, const struct termios *t, const char *bytes,
	size_t size, struct sbx_err *err)
{
	struct stdin_line line = command->line;

	if (!(t->c_lflag & ICANON)) {
		command->line = (struct stdin_line){0}; /* its bytes are read one by one */
		return 0;
	}
	for (size_t i = 0; i < size; i++) {
		line_add(&line, t, bytes[i]);
		if (line.length > LINE_MAX_BYTES)
			return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
				"stdin has a line longer than %d bytes (%zu of them are in the "
				"terminal from earlier writes), which the terminal would cut "
				"silently; nothing was written: use shorter lines, or file_write "
				"and a redirection",
				LINE_MAX_BYTES, command->line.length);
	}
	command->line = line;
	return 0;
}

void command_flush_stdin(struct command *command)
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

/* Whether a byte after n more would wait behind input that nobody has read. */
static bool is_full(const struct command *command, size_t n)
{
	int unread = 0;

	(void)ioctl(command->slave_fd, FIONREAD, &unread); /* fails: taken as empty */
	return command->unwritten.size || (size_t)unread + command->line.length + n >= NEARLY_FULL;
}

/* What N_TTY does with the character (isig()), but now. */
static void send_signal(struct command *command, const struct termios *t, int sig)
{
	command->n_written = command->n_queued;
	sbx_buf_clear(&command->unwritten);
	if (!(t->c_lflag & NOFLSH)) {
		(void)tcflush(command->master_fd, TCOFLUSH); /* on its way to the line discipline */
		(void)tcflush(command->slave_fd, TCIFLUSH);
		command->line = (struct stdin_line){0};
	}
	(void)ioctl(command->master_fd, TIOCSIG, sig); /* nobody in the foreground: no signal */
}

/* Bytes up to the last signal character when these cannot go the ordinary way; sends it. */
static size_t take_signal(
	struct command *command, const struct termios *t, const char *bytes, size_t size)
{
	size_t n = size;

	while (n > 0 && !signal_of(t, bytes[n - 1]))
		n--;
	if (n == 0 || !is_full(command, n - 1))
		return 0;
	command->n_queued += n;
	send_signal(command, t, signal_of(t, bytes[n - 1]));
	return n;
}

static int check_room(const struct command *command, size_t size, struct sbx_err *err)
{
	if (size > COMMAND_STDIN_MAX)
		return sbx_err_kind(err, SBX_KIND_INVALID, E2BIG,
			"stdin has %zu bytes, more than the limit of %u; nothing was written: "
			"write "
			"the data with file_write and redirect it",
			size, COMMAND_STDIN_MAX);
	if (command->unwritten.size)
		return sbx_err_kind(err, SBX_KIND_BUSY, EAGAIN,
			"%zu bytes for stdin of %s wait since another call, because the command "
			"does not read; nothing was written",
			command->unwritten.size, command->id);
	return 0;
}

int command_write(struct command *command, const char *bytes, size_t size, struct sbx_err *err)
{
	struct termios t;
	size_t taken;
	int r;

	if (tcgetattr(command->master_fd, &t) < 0)
		return sbx_err_kind(err, SBX_KIND_BUSY, EAGAIN,
			"command %s has not started yet; nothing was written: try again",
			command->id);
	taken = take_signal(command, &t, bytes, size);
	if (memchr(bytes, t.c_cc[VINTR], size))
		command->interrupted = true; /* whether it acts on it decides its exit status */
	r = check_room(command, size - taken, err);
	if (r == 0)
		r = follow_lines(command, &t, bytes + taken, size - taken, err);
	if (r == 0 && (r = sbx_buf_append(&command->unwritten, bytes + taken, size - taken)) < 0)
		(void)sbx_err_set(err, -r, "keep stdin of %s: %m", command->id);
	if (r < 0)
		return r;
	command->n_queued += size - taken;
	if (command->master_watch)
		command_flush_stdin(command);
	return 0;
}

void command_drop_unwritten(struct command *command)
{
	sbx_buf_clear(&command->unwritten);
	command->n_queued = command->n_written;
	command->line = (struct stdin_line){0};
	if (command->master_watch)
		command_flush_stdin(command);
}
