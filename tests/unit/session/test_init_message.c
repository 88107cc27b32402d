/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "sbx/init.h"
#include "sbx/sock.h"

static int pair[2];

static void set_up(void)
{
	cr_assert_eq(sbx_sock_pair(pair), 0);
}

static void tear_down(void)
{
	sbx_fd_close(&pair[0]);
	sbx_fd_close(&pair[1]);
}

TestSuite(init_message, .init = set_up, .fini = tear_down);

static int n_open(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

Test(init_message, a_message_and_its_descriptor_arrive_as_sent)
{
	const struct sbx_init_message sent = {
		.op = SBX_INIT_STARTED, .command = 7, .code = -2, .pid = 9, .detail = "why"};
	struct sbx_init_message got;
	int fd = -EBADF;

	cr_assert_eq(sbx_init_send(pair[0], &sent, pair[0]), 0);
	cr_assert_eq(sbx_init_read(pair[1], &got, &fd), 1);
	cr_expect_eq(memcmp(&got, &sent, sizeof(got)), 0);
	cr_expect_geq(fd, 0);
	cr_expect_neq(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
	sbx_fd_close(&fd);
	cr_assert_eq(sbx_init_send(pair[0], &sent, -EBADF), 0);
	cr_assert_eq(sbx_init_read(pair[1], &got, &fd), 1);
	cr_expect_eq(fd, -EBADF);
}

Test(init_message, an_end_is_an_end_and_nothing_is_nothing)
{
	struct sbx_init_message got;
	int fd;

	cr_assert_eq(fcntl(pair[1], F_SETFL, O_RDWR | O_NONBLOCK), 0);
	cr_expect_eq(sbx_init_read(pair[1], &got, &fd), -EAGAIN);
	sbx_fd_close(&pair[0]);
	cr_expect_eq(sbx_init_read(pair[1], &got, &fd), 0);
}

static struct sbx_init_message unterminated(void)
{
	struct sbx_init_message m = {.op = SBX_INIT_READY};

	memset(m.detail, 'x', sizeof(m.detail));
	return m;
}

/* A hostile init sends what it likes: each is refused and leaves no descriptor open. */
Test(init_message, malformed_messages_are_refused)
{
	const struct sbx_init_message good = {.op = SBX_INIT_READY}, none = {0},
				      unknown = {.op = 99}, long_detail = unterminated();
	const struct {
		const struct sbx_init_message *message;
		size_t size, n_fds;
	} cases[] = {
		{&none, sizeof(none), 1},
		{&unknown, sizeof(unknown), 1},
		{&long_detail, sizeof(long_detail), 1},
		{&good, sizeof(good) - 1, 1},
		{&good, 1, 0},
		{&good, sizeof(good), 2},
	};
	const int fds[] = {STDIN_FILENO, STDOUT_FILENO};
	int before = n_open();

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		struct sbx_init_message got;
		int fd;

		cr_assert_eq(sbx_sock_send(
				     pair[0], cases[i].message, cases[i].size, fds, cases[i].n_fds),
			0);
		cr_expect_eq(sbx_init_read(pair[1], &got, &fd), -EPROTO, "case %zu", i);
	}
	cr_expect_eq(n_open(), before);
}

Test(init_message, a_message_that_is_too_long_is_refused)
{
	char bytes[sizeof(struct sbx_init_message) + 1] = {SBX_INIT_READY};
	struct sbx_init_message got;
	int fd;

	cr_assert_eq(sbx_sock_send(pair[0], bytes, sizeof(bytes), NULL, 0), 0);
	cr_expect_eq(sbx_init_read(pair[1], &got, &fd), -EPROTO);
}
