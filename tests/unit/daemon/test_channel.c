/* SPDX-License-Identifier: MIT */
/* Frames over a stream, whatever the pieces they come in and whoever goes away when. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fixture.h"
#include "sbx/sock.h"

struct line {
	struct sbx_loop *loop;
	struct peer peer; /* what is tested */
	int fd;           /* the other end, plain */
};

static void line_init(struct line *line)
{
	int fds[2];

	cr_assert_eq(sbx_loop_new(&line->loop), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	line->fd = fds[0];
	peer_init(&line->peer, line->loop, fds[1]);
}

static void line_done(struct line *line)
{
	peer_done(&line->peer);
	sbx_fd_close(&line->fd);
	sbx_loop_free(line->loop);
}
#define LINE SBX_CLEANUP(line_done)

static void say(const struct line *line, const void *bytes, size_t size)
{
	cr_assert_eq(write(line->fd, bytes, size), (ssize_t)size);
}

static void put(struct sbx_buf *out, uint64_t id, const char *payload)
{
	cr_assert_eq(sbx_wire_put(out, SBX_WIRE_REQUEST, id, payload, strlen(payload)), 0);
}

Test(channel, frames_come_whole_whatever_the_pieces, .timeout = 20)
{
	static const size_t pieces[] = {1, 3, 16, 17, 1000};

	for (size_t i = 0; i < SBX_N_ELEMENTS(pieces); i++) {
		LINE struct line line;
		SBX_BUF struct sbx_buf bytes = SBX_BUF_INIT;

		line_init(&line);
		put(&bytes, 1, "first");
		put(&bytes, UINT64_MAX, "");
		put(&bytes, 3, "the third one");
		for (size_t at = 0; at < bytes.size; at += pieces[i]) {
			say(&line, bytes.data + at, SBX_MIN(pieces[i], bytes.size - at));
			peer_wait(&line.peer, line.peer.n); /* nothing: the loop sees it below */
		}
		peer_wait(&line.peer, 3);
		cr_expect_str_eq(peer_text(&line.peer, 1, SBX_WIRE_REQUEST), "first");
		cr_expect_str_eq(peer_text(&line.peer, UINT64_MAX, SBX_WIRE_REQUEST), "");
		cr_expect_str_eq(peer_text(&line.peer, 3, SBX_WIRE_REQUEST), "the third one");
	}
}

Test(channel, a_peer_that_goes_is_told_once_after_its_frames, .timeout = 20)
{
	static const struct {
		const char *what;
		size_t cut; /* bytes of the last frame that do not come */
		size_t n_frames;
	} cases[] = {{"between frames", 0, 2}, {"inside of a frame", 1, 1}};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		LINE struct line line;
		SBX_BUF struct sbx_buf bytes = SBX_BUF_INIT;

		line_init(&line);
		put(&bytes, 1, "one");
		put(&bytes, 2, "two");
		say(&line, bytes.data, bytes.size - cases[i].cut);
		sbx_fd_close(&line.fd);
		peer_wait_end(&line.peer);
		cr_expect_eq(line.peer.n, cases[i].n_frames, "%s", cases[i].what);
		cr_expect_eq(line.peer.reason, 0, "%s", cases[i].what);
	}
}

Test(channel, what_is_no_frame_ends_the_connection, .timeout = 20)
{
	static const struct {
		const char *what;
		struct sbx_wire_header header;
	} cases[] = {
		{"kind 0", {.size = 0, .kind = 0}}, {"an unknown kind", {.size = 0, .kind = 77}},
		{"a frame over the limit",
			{.size = SBX_WIRE_PAYLOAD_MAX + 1, .kind = SBX_WIRE_REQUEST}},
		{"text", {.size = 0x20544547, .kind = 0x5448202f}}, /* GET / HT */
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		LINE struct line line;
		SBX_BUF struct sbx_buf bytes = SBX_BUF_INIT;

		line_init(&line);
		put(&bytes, 1, "sound");
		cr_assert_eq(sbx_buf_append(&bytes, &cases[i].header, sizeof(cases[i].header)), 0);
		say(&line, bytes.data, bytes.size);
		peer_wait_end(&line.peer);
		cr_expect_eq(line.peer.n, 1u, "%s", cases[i].what);
		cr_expect_eq(line.peer.reason, -EPROTO, "%s: %d", cases[i].what, line.peer.reason);
	}
}

Test(channel, a_callback_may_free_it_with_frames_left, .timeout = 20)
{
	LINE struct line line;
	SBX_BUF struct sbx_buf bytes = SBX_BUF_INIT;

	line_init(&line);
	line.peer.free_at_first = true;
	put(&bytes, 1, "one");
	put(&bytes, 2, "two");
	say(&line, bytes.data, bytes.size);
	peer_wait(&line.peer, 2);
	cr_expect_eq(line.peer.n, 1u);
	cr_expect_null(line.peer.channel);
}

static void on_nothing(void *data)
{
	sbx_loop_stop(data);
}

/* Lets the loop go round until nothing is left to do at once. */
static void go_round(struct sbx_loop *loop)
{
	struct sbx_timer *timer = NULL;

	cr_assert_eq(sbx_timer_new(loop, on_nothing, loop, &timer), 0);
	cr_assert_eq(sbx_timer_set(timer, sbx_now_ns() + 1), 0);
	cr_assert_eq(sbx_loop_run(loop), 0);
	sbx_timer_free(timer);
}

/* Reads so many bytes, while the loop writes what there is room for. */
static void read_all(const struct line *line, size_t size, uint64_t *ret_sum)
{
	char chunk[65536];

	while (size) {
		ssize_t n = recv(line->fd, chunk, SBX_MIN(size, sizeof(chunk)), MSG_DONTWAIT);

		cr_assert(n > 0 || errno == EAGAIN);
		for (ssize_t i = 0; i < n; i++)
			*ret_sum += (unsigned char)chunk[i];
		size -= n > 0 ? (size_t)n : 0;
		go_round(line->loop);
	}
}

Test(channel, a_peer_that_does_not_read_is_not_read_from, .timeout = 60)
{
	static const size_t size = CHANNEL_OUT_HIGH / 4;
	SBX_FREE char *payload = calloc(1, size + 1);
	SBX_BUF struct sbx_buf bytes = SBX_BUF_INIT;
	LINE struct line line;
	uint64_t sum = 0;
	size_t n_sent = 0;

	cr_assert_not_null(payload);
	memset(payload, 1, size);
	line_init(&line);
	for (; !channel_is_behind(line.peer.channel); n_sent++)
		peer_send(&line.peer, SBX_WIRE_CHUNK, 0, payload);
	put(&bytes, 9, "a request");
	say(&line, bytes.data, bytes.size);
	go_round(line.loop);
	cr_expect_eq(line.peer.n, 0u, "a request is read of a peer that is behind");
	read_all(&line, n_sent * (sizeof(struct sbx_wire_header) + size), &sum);
	peer_wait(&line.peer, 1);
	cr_expect_str_eq(peer_text(&line.peer, 9, SBX_WIRE_REQUEST), "a request");
	/* each frame's header has its size and its kind */
	cr_expect_eq(sum, n_sent * (size + (size >> 16 & 0xff) + SBX_WIRE_CHUNK));
}

Test(channel, a_paused_one_reads_when_it_is_resumed, .timeout = 20)
{
	SBX_BUF struct sbx_buf bytes = SBX_BUF_INIT;
	LINE struct line line;

	line_init(&line);
	channel_pause(line.peer.channel);
	put(&bytes, 1, "one");
	say(&line, bytes.data, bytes.size);
	go_round(line.loop);
	cr_expect_eq(line.peer.n, 0u);
	channel_resume(line.peer.channel);
	peer_wait(&line.peer, 1);
	cr_expect_str_eq(peer_text(&line.peer, 1, SBX_WIRE_REQUEST), "one");
}

Test(channel, a_descriptor_goes_along_with_its_frame, .timeout = 20)
{
	struct sbx_wire_header header;
	int fds[SBX_SOCK_FDS_MAX];
	int pipe_fds[2];
	size_t n_fds = 0;
	char text[8] = "";
	LINE struct line line;

	line_init(&line);
	cr_assert_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
	cr_assert_eq(
		channel_send_fds(line.peer.channel, SBX_WIRE_REQUEST, 5, "read", 4, pipe_fds, 1),
		0);
	(void)close(pipe_fds[0]);
	cr_assert_eq(sbx_sock_recv(line.fd, &header, sizeof(header), fds, &n_fds),
		(ssize_t)sizeof(header));
	cr_assert_eq(n_fds, 1u);
	cr_expect_eq(header.id, 5u);
	cr_assert_eq(read(line.fd, text, 4), 4);
	cr_expect_str_eq(text, "read");
	cr_assert_eq(write(pipe_fds[1], "through", 7), 7);
	cr_assert_eq(read(fds[0], text, 7), 7);
	cr_expect_str_eq(text, "through");
	(void)close(pipe_fds[1]);
	(void)close(fds[0]);
}
