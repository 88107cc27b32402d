/* SPDX-License-Identifier: MIT */
/* sandboxd's socket: who may connect, and what becomes of requests. */
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "sbx/client.h"

#define ASK(op) "{\"op\":\"" op "\",\"args\":{\"sandbox_id\":\"box\"}}"

Test(client, each_request_is_answered_once_and_by_its_id, .timeout = 20)
{
	static const struct {
		const char *request;
		const char *word; /* in the error; NULL: a result */
	} cases[] = {
		{ASK("session_list"), NULL},
		{ASK("reject_list"), NULL}, /* a worker answers it */
		{"no JSON", "invalid_request"},
		{"[]", "there is no operation"},
		{"{}", "there is no operation ''"},
		{ASK("nosuch"), "there is no operation 'nosuch'"},
		{"{\"op\":\"session_list\"}", "arguments must be an object"},
		{"{\"op\":\"session_list\",\"args\":[1]}", "arguments must be an object"},
		{"{\"op\":\"session_list\",\"args\":{}}", "sandbox_id"},
		{"{\"op\":\"session_list\",\"args\":{\"sandbox_id\":\"box\",\"x\":1}}", "x"},
		{"{\"op\":\"reject_show\",\"args\":{\"sandbox_id\":\"box\",\"reject_id\":\"rej_1\"}"
		 "}",
			"there is no reject rej_1"},
	};
	WORLD struct world w;
	PEER struct peer peer;

	world_init(&w);
	peer_init(&peer, w.daemon.loop, world_connect(&w));
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++)
		peer_send(&peer, SBX_WIRE_REQUEST, 100 + i, cases[i].request);
	peer_wait(&peer, 1 + SBX_N_ELEMENTS(cases));
	cr_expect_str_eq(peer_text(&peer, 0, SBX_WIRE_RESULT), "{}", "the greeting");
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		const char *text =
			peer_text(&peer, 100 + i, cases[i].word ? SBX_WIRE_ERROR : SBX_WIRE_RESULT);

		cr_expect(!cases[i].word || strstr(text, cases[i].word), "%s: %s", cases[i].request,
			text);
	}
	world_settle(&w);
	cr_expect_eq(peer.n, 1 + SBX_N_ELEMENTS(cases), "an answer came twice");
}

Test(client, a_client_that_goes_in_the_middle_leaves_the_others_served, .timeout = 20)
{
	WORLD struct world w;
	PEER struct peer gone;
	PEER struct peer other;

	world_init(&w);
	peer_init(&gone, w.daemon.loop, world_connect(&w));
	peer_send(&gone, SBX_WIRE_REQUEST, 1, ASK("reject_list"));
	peer_wait(&gone, 1); /* the greeting; the worker has the request by now, or soon */
	channel_free(sbx_take(&gone.channel));
	peer_init(&other, w.daemon.loop, world_connect(&w));
	peer_send(&other, SBX_WIRE_REQUEST, 2, ASK("reject_list"));
	peer_wait(&other, 2);
	cr_expect_str_eq(peer_text(&other, 2, SBX_WIRE_RESULT), "{\"rejects\":[]}");
	cr_expect_eq(w.daemon.n_clients, 1u);
}

Test(client, nonsense_ends_one_connection_and_no_other, .timeout = 20)
{
	WORLD struct world w;
	PEER struct peer bad;
	PEER struct peer good;

	world_init(&w);
	peer_init(&bad, w.daemon.loop, world_connect(&w));
	peer_init(&good, w.daemon.loop, world_connect(&w));
	peer_wait(&bad, 1);
	cr_assert_eq(write(bad.fd, "GET / HTTP/1.1\r\n\r\n", 18), 18);
	peer_wait_end(&bad);
	peer_send(&good, SBX_WIRE_CANCEL, 77, "");   /* of nothing: no answer */
	peer_send(&good, SBX_WIRE_RESULT, 78, "{}"); /* not a client's to send: ignored */
	peer_send(&good, SBX_WIRE_REQUEST, 79, ASK("session_list"));
	peer_wait(&good, 2);
	cr_expect_str_eq(peer_text(&good, 79, SBX_WIRE_RESULT), "{\"sessions\":[]}");
	cr_expect_eq(w.daemon.n_clients, 1u);
}

Test(client, one_client_more_than_the_limit_is_told_so, .timeout = 60)
{
	static struct peer peers[CLIENTS_MAX];
	WORLD struct world w;
	PEER struct peer more;
	PEER struct peer again;

	world_init(&w);
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		peer_init(&peers[i], w.daemon.loop, world_connect(&w));
		peer_wait(&peers[i], 1);
		(void)peer_text(&peers[i], 0, SBX_WIRE_RESULT);
	}
	peer_init(&more, w.daemon.loop, world_connect(&w));
	peer_wait_end(&more);
	cr_expect_not_null(strstr(peer_text(&more, 0, SBX_WIRE_ERROR), "server_busy"));
	peer_done(&peers[7]);
	world_settle(&w);
	peer_init(&again, w.daemon.loop, world_connect(&w));
	peer_wait(&again, 1);
	(void)peer_text(&again, 0, SBX_WIRE_RESULT);
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		peer_done(&peers[i]);
}

/* Connects as another user and hands on what it is told. */
static pid_t start_stranger(struct world *w, uid_t uid, int ret_fds[2])
{
	pid_t pid;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_fds), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		char text[1024];
		ssize_t n;
		int fd;

		if (setresuid(uid, uid, uid) < 0)
			_exit(2);
		fd = world_connect(w);
		n = read(fd, text, sizeof(text));
		_exit(n > 0 && write(ret_fds[1], text, (size_t)n) == n ? 0 : 3);
	}
	(void)close(ret_fds[1]);
	return pid;
}

Test(client, strangers_hear_what_they_hear_of_no_sandbox, .timeout = 20)
{
	static const struct {
		uid_t uid;
		bool admitted;
	} cases[] = {{4321, true}, {4322, false}, {1, false}};
	struct sbx_err nothing = SBX_ERR_INIT;
	WORLD struct world w;

	if (geteuid() != 0)
		cr_skip_test("needs root, to be other users");
	world_init(&w);
	(void)sbx_client_no_sandbox("box", &nothing);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		PEER struct peer said;
		int fds[2];
		int status = -1;
		pid_t pid = start_stranger(&w, cases[i].uid, fds);

		peer_init(&said, w.daemon.loop, fds[0]);
		peer_wait(&said, 1);
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_assert_eq(status, 0);
		if (cases[i].admitted)
			cr_expect_str_eq(peer_text(&said, 0, SBX_WIRE_RESULT), "{}");
		else
			cr_expect_not_null(
				strstr(peer_text(&said, 0, SBX_WIRE_ERROR), nothing.message));
	}
}
