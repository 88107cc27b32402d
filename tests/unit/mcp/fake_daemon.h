/* SPDX-License-Identifier: MIT */
/*
 * A session with a daemon that does what a test tells it. Lines go in by bench_send(), what comes
 * out and what the daemon hears is recorded, and after each event the next step of the test's
 * script is tried.
 *
 * Sandbox ids: "gone" does not exist, "broken" has a daemon that cannot be started, "crash" kills
 * whoever connects; every other id leads to this daemon.
 */
#ifndef TESTS_MCP_FAKE_DAEMON_H
#define TESTS_MCP_FAKE_DAEMON_H

#include "../../../src/mcp/session.h"
#include "sbx/wire.h"

#define BENCH_FRAMES_MAX 2048

struct bench;
struct connection;
/* Does one thing and returns true, or false when what it waits for has not come yet. */
typedef bool (*bench_step)(struct bench *bench);

struct bench_frame {
	int fd; /* the daemon's end of the connection it came on */
	struct sbx_wire_header header;
	char *payload; /* NUL-terminated */
};

struct bench {
	struct sbx_loop *loop;
	struct mcp_links *links;
	struct mcp_session session;
	struct sbx_buf out; /* all lines so far */
	size_t n_lines;
	struct bench_frame frames[BENCH_FRAMES_MAX];
	size_t n_frames;
	size_t n_connections; /* accepted so far */
	int last_fd;          /* of the newest connection */
	const bench_step *steps;
	/* private */
	struct connection *connections;
	bool advance_deferred;
	int listen_fd;
	struct sbx_watch *listen_watch;
	char directory[64];
};

/* Runs the script; fails the test when it cannot be set up. */
void bench_run(const bench_step *steps);

void bench_send(struct bench *bench, const char *fmt, ...) SBX_PRINTF(2, 3);
/* Line i (from 0) of what came out, without its end, NUL-terminated; valid until the next call. */
const char *bench_line(struct bench *bench, size_t i);
/* Answers frame i, on the connection it came on. */
void bench_answer(struct bench *bench, size_t i, enum sbx_wire_kind kind, const char *payload);
/* The newest frame whose payload contains text; fails the test when there is none. */
size_t bench_frame_with(struct bench *bench, const char *text);

#endif
