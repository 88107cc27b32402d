/* SPDX-License-Identifier: MIT */
/*
 * A sandbox without sandboxd: a state directory, a spawner, and sessions driven by hand. For tests
 * of the session layer; needs root. Failures are assertions of the running test.
 */
#ifndef SBX_TEST_LIVE_H
#define SBX_TEST_LIVE_H

#include "sbx/buf.h"
#include "sbx/init.h"
#include "sbx/spawner.h"

#define LIVE_ID_BASE    (UINT32_C(1) << 20)
#define LIVE_TIMEOUT_MS 20000 /* generous: only a test that fails waits so long */

struct live {
	char dir[64];
	int dir_fd, layers_fd, sessions_fd, lock_fd;
	struct sbx_spawner *spawner;
	uint64_t tag;
};

struct live_session {
	struct live *live;
	uint32_t slot;
	char name[32]; /* below sessions/ */
	int root_fd;
	int control_fd; /* -EBADF until RUN */
	int pidfd;
	uint32_t command; /* the last one's number */
};

/* Makes the directories and starts the spawner, with layer 0 "base": an empty tree. */
void live_start(struct live *live, const struct sbx_spawner_config *changes);
void live_done(struct live *live); /* also half-made ones */
/* Skips the running test when it cannot make sandboxes. */
void live_require(void);

/* Directory of a layer's tree; made and attached as number. */
int live_layer(struct live *live, uint32_t number);
/* The answer to the request just sent: its code. */
int live_answer(struct live *live, int *ret_fd, char ret_message[static 256]);
/* Waits for an answer that must be 0. */
int live_answer_ok(struct live *live);

void live_prepare(struct live *live, struct live_session *s, uint32_t slot, const char *name,
	const uint32_t *layers, size_t n_layers);
void live_run(struct live_session *s); /* until READY */
/* prepare on layer 0, and run. */
void live_open(struct live *live, struct live_session *s, uint32_t slot, const char *name);
void live_stop(struct live_session *s); /* init and all it started are gone afterwards */
void live_drop(struct live_session *s); /* stop and DROP */

struct live_command {
	uint32_t number;
	pid_t pid; /* inside */
	int master_fd;
};
void live_send_start(struct live_session *s, const char *text, size_t size);
struct live_command live_command_start(struct live_session *s, const char *text, size_t size);
/* Reads to the end; the wait status. */
int live_command_finish(struct live_session *s, struct live_command *c, struct sbx_buf *ret_output);
/* Reads until the output contains text. */
void live_command_expect(struct live_command *c, const char *text);
/* The next message of init about a command or itself; news of who is left are passed over. */
struct sbx_init_message live_message(struct live_session *s, int *ret_fd);

/* Runs a command to its end; output replaces what is in the buffer. The wait status. */
int live_exec(struct live_session *s, const char *text, struct sbx_buf *ret_output);
/* Expects exactly this output, and exit status 0. */
void live_expect(struct live_session *s, const char *text, const char *output);

/* A file of the session's upper on disk. */
void live_upper_path(const struct live_session *s, const char *name, char ret[static 256]);

#endif
