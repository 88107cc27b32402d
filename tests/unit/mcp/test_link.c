/* SPDX-License-Identifier: MIT */
/* Tool calls on their way to a daemon and back. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "fake_daemon.h"

#define READ(sandbox, path)                                                                        \
	"{\"name\":\"file_read\",\"arguments\":{\"sandbox_id\":\"" sandbox "\",\"path\":\"" path   \
	"\"}}"

static void send_read(struct bench *bench, const char *id, const char *path)
{
	bench_send(bench,
		"{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/call\",\"params\":{\"name\":"
		"\"file_read\",\"arguments\":{\"sandbox_id\":\"box\",\"path\":\"%s\"}}}",
		id, path);
}

static void send_call(struct bench *bench, const char *id, const char *params)
{
	bench_send(bench, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/call\",\"params\":%s}",
		id, params);
}

static void send_cancel(struct bench *bench, const char *id)
{
	bench_send(bench,
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
		"{\"requestId\":%s}}",
		id);
}

static void expect_line(struct bench *bench, size_t i, const char *id, const char *part)
{
	char head[128];
	const char *line = bench_line(bench, i);

	(void)snprintf(head, sizeof(head), "{\"jsonrpc\":\"2.0\",\"id\":%s,", id);
	cr_expect(!strncmp(line, head, strlen(head)), "id %s: %.200s", id, line);
	cr_expect_not_null(strstr(line, part), "%s: %.200s", part, line);
}

static bool send_two(struct bench *bench)
{
	send_read(bench, "1", "one");
	send_read(bench, "\"1\"", "two");
	return true;
}

static bool got_two_frames(struct bench *bench)
{
	return bench->n_frames >= 2;
}

static bool got_two_lines(struct bench *bench)
{
	return bench->n_lines >= 2;
}

static bool answer_in_reverse(struct bench *bench)
{
	bench_answer(bench, bench_frame_with(bench, "two"), SBX_WIRE_RESULT, "{\"n\":2}");
	bench_answer(bench, bench_frame_with(bench, "one"), SBX_WIRE_ERROR,
		"{\"kind\":\"not_found\",\"message\":\"m\",\"details\":{}}");
	return true;
}

static bool check_reverse(struct bench *bench)
{
	cr_expect_eq(bench->n_connections, 1);
	cr_expect_str_eq(bench->frames[0].payload,
		"{\"op\":\"file_read\",\"args\":{\"sandbox_id\":\"box\",\"path\":\"one\","
		"\"offset\":1,\"limit\":2000}}");
	cr_expect_str_eq(bench_line(bench, 0),
		"{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{\"content\":[],"
		"\"structuredContent\":{\"n\":2},\"isError\":false}}");
	cr_expect_str_eq(bench_line(bench, 1),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[],\"structuredContent\":"
		"{\"error\":{\"kind\":\"not_found\",\"message\":\"m\",\"details\":{}}},"
		"\"isError\":true}}");
	return true;
}

Test(link, answers_come_back_in_any_order_over_one_connection)
{
	static const bench_step steps[] = {
		send_two, got_two_frames, answer_in_reverse, got_two_lines, check_reverse, NULL};

	bench_run(steps);
}

static bool send_to_nobody(struct bench *bench)
{
	send_call(bench, "1", READ("../etc", "p"));
	send_call(bench, "2", READ("gone", "p"));
	send_call(bench, "3", READ("broken", "p"));
	send_call(bench, "4", READ("crash", "p"));
	return true;
}

static bool check_nobody(struct bench *bench)
{
	static const struct {
		const char *id, *part;
	} expected[] = {
		{"1", "{\"kind\":\"not_found\",\"message\":\"no sandbox ../etc\""},
		{"2", "{\"kind\":\"not_found\",\"message\":\"no sandbox gone\""},
		{"3", "{\"kind\":\"connection_error\",\"message\":\"cannot start it\""},
		{"4", "{\"kind\":\"connection_error\",\"message\":\"connecting to"},
	};
	size_t n_found = 0;

	if (bench->n_lines < SBX_N_ELEMENTS(expected))
		return false;
	for (size_t i = 0; i < bench->n_lines; i++)
		for (size_t k = 0; k < SBX_N_ELEMENTS(expected); k++)
			n_found += strstr(bench_line(bench, i), expected[k].part) != NULL;
	cr_expect_eq(n_found, SBX_N_ELEMENTS(expected), "%s", bench->out.data);
	cr_expect_eq(mcp_links_n_calls(bench->links), 0);
	return true;
}

Test(link, sandboxes_that_cannot_be_reached_say_why)
{
	static const bench_step steps[] = {send_to_nobody, check_nobody, NULL};

	bench_run(steps);
}

static bool hang_up(struct bench *bench)
{
	(void)shutdown(bench->last_fd, SHUT_RDWR);
	return true;
}

static bool check_hang_up(struct bench *bench)
{
	expect_line(bench, 0, "1", "\"kind\":\"connection_error\"");
	expect_line(bench, 1, "\"1\"", "\"kind\":\"connection_error\"");
	cr_expect_not_null(strstr(bench_line(bench, 0), "published, or kept as a reject"));
	return true;
}

static bool send_third(struct bench *bench)
{
	send_read(bench, "3", "three");
	return true;
}

static bool answer_third(struct bench *bench)
{
	if (bench->n_frames < 3)
		return false;
	cr_expect_eq(bench->n_connections, 2);
	bench_answer(bench, bench_frame_with(bench, "three"), SBX_WIRE_RESULT, "{\"n\":3}");
	return true;
}

static bool check_third(struct bench *bench)
{
	if (bench->n_lines < 3)
		return false;
	expect_line(bench, 2, "3", "{\"n\":3}");
	return true;
}

Test(link, lost_connection_answers_all_calls_and_the_next_one_connects_again)
{
	static const bench_step steps[] = {send_two, got_two_frames, hang_up, got_two_lines,
		check_hang_up, send_third, answer_third, check_third, NULL};

	bench_run(steps);
}

static bool send_nonsense(struct bench *bench)
{
	static const char nonsense[] = "HTTP/1.1 400 Bad Request";

	cr_assert_eq(
		send(bench->last_fd, nonsense, sizeof(nonsense), 0), (ssize_t)sizeof(nonsense));
	return true;
}

Test(link, daemon_that_talks_nonsense_is_left_and_called_again)
{
	static const bench_step steps[] = {send_two, got_two_frames, send_nonsense, got_two_lines,
		send_third, answer_third, check_third, NULL};

	bench_run(steps);
}

static bool answer_with_bad_text(struct bench *bench)
{
	bench_answer(bench, 0, SBX_WIRE_RESULT, "{\"a\":\n1}");
	bench_answer(bench, 1, SBX_WIRE_RESULT, "{\"a\":\"\xff\"}");
	return true;
}

static bool check_bad_text(struct bench *bench)
{
	expect_line(bench, 0, "1", "\"kind\":\"internal_error\"");
	expect_line(bench, 1, "\"1\"", "\"kind\":\"internal_error\"");
	return true;
}

Test(link, answer_that_would_break_the_line_does_not_get_out)
{
	static const bench_step steps[] = {send_two, got_two_frames, answer_with_bad_text,
		got_two_lines, check_bad_text, NULL};

	bench_run(steps);
}

static bool cancel_first(struct bench *bench)
{
	send_cancel(bench, "1");
	return true;
}

static bool answer_cancelled(struct bench *bench)
{
	size_t one = bench_frame_with(bench, "one");

	if (bench->n_frames < 3)
		return false;
	cr_expect_eq(bench->frames[2].header.kind, SBX_WIRE_CANCEL);
	cr_expect_eq(bench->frames[2].header.id, bench->frames[one].header.id);
	bench_answer(bench, one, SBX_WIRE_RESULT, "{\"late\":1}");
	bench_answer(bench, bench_frame_with(bench, "two"), SBX_WIRE_RESULT, "{\"n\":2}");
	return true;
}

static bool check_cancelled(struct bench *bench)
{
	if (bench->n_lines < 1)
		return false;
	expect_line(bench, 0, "\"1\"", "{\"n\":2}");
	cr_expect_eq(mcp_links_n_calls(bench->links), 0);
	return true;
}

Test(link, cancelled_call_is_told_to_the_daemon_and_never_answered)
{
	static const bench_step steps[] = {
		send_two, got_two_frames, cancel_first, answer_cancelled, check_cancelled, NULL};

	bench_run(steps);
}

static bool send_batch(struct bench *bench)
{
	bench->session.negotiated = "2025-03-26";
	bench_send(bench,
		"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":" READ("box",
			"one") "},"
			       "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"},"
			       "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/"
			       "call\",\"params\":" READ("box",
				       "two") "},"
					      "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/"
					      "call\",\"params\":" READ("box", "three") "}]");
	return true;
}

static bool answer_batch(struct bench *bench)
{
	if (bench->n_frames < 3)
		return false;
	cr_expect_eq(bench->n_lines, 0);
	bench_answer(bench, bench_frame_with(bench, "three"), SBX_WIRE_RESULT, "{\"n\":3}");
	send_cancel(bench, "3");
	bench_answer(bench, bench_frame_with(bench, "one"), SBX_WIRE_RESULT, "{\"n\":1}");
	return true;
}

static bool check_batch(struct bench *bench)
{
	const char *line;

	if (bench->n_lines < 1)
		return false;
	line = bench_line(bench, 0);
	cr_expect_eq(line[0], '[');
	cr_expect_not_null(strstr(line, "\"id\":2,\"result\":{}"));
	cr_expect_not_null(strstr(line, "{\"n\":1}"));
	cr_expect_not_null(strstr(line, "{\"n\":3}"));
	cr_expect_null(strstr(line, "\"id\":3,"));
	return true;
}

Test(link, batch_waits_for_its_last_call_and_leaves_out_cancelled_ones)
{
	static const bench_step steps[] = {send_batch, answer_batch, check_batch, NULL};

	bench_run(steps);
}

/* The script ends while the calls of the batch wait: the sanitizers see what is not freed. */
Test(link, session_can_end_while_a_batch_waits)
{
	static const bench_step steps[] = {send_batch, NULL};

	bench_run(steps);
}

static bool send_too_many(struct bench *bench)
{
	for (size_t i = 0; i <= MCP_CALLS_MAX; i++)
		send_read(bench, "7", "p");
	return true;
}

static bool check_too_many(struct bench *bench)
{
	cr_expect_eq(bench->n_lines, 1);
	expect_line(bench, 0, "7", "\"kind\":\"server_busy\"");
	cr_expect_eq(mcp_links_n_calls(bench->links), MCP_CALLS_MAX);
	return true;
}

Test(link, too_many_calls_are_refused_and_not_queued)
{
	static const bench_step steps[] = {send_too_many, check_too_many, NULL};

	bench_run(steps);
}

/* One call to a sandbox of its own after the other, more than can be connected at once. */
static bool visit_many_sandboxes(struct bench *bench)
{
	size_t n = bench->n_lines;

	if (bench->n_frames < n)
		return false;
	if (bench->n_frames > n) {
		bench_answer(bench, n, SBX_WIRE_RESULT, "{}");
		return false;
	}
	if (n == MCP_LINKS_MAX + 8)
		return true;
	if (mcp_links_n_calls(bench->links) == 0)
		bench_send(bench,
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
			"{\"name\":\"file_blame\",\"arguments\":{\"sandbox_id\":\"box%zu\","
			"\"path\":\"p\"}}}",
			n);
	return false;
}

static bool check_many_sandboxes(struct bench *bench)
{
	for (size_t i = 0; i < bench->n_lines; i++)
		cr_expect_not_null(strstr(bench_line(bench, i), "\"isError\":false"));
	return true;
}

Test(link, idle_connections_make_room_for_new_ones)
{
	static const bench_step steps[] = {visit_many_sandboxes, check_many_sandboxes, NULL};

	bench_run(steps);
}

#define LONG_SIZE (6u << 20)

static char *long_text(void)
{
	char *text = malloc(LONG_SIZE + 1);

	cr_assert_not_null(text);
	memset(text, 'x', LONG_SIZE);
	text[LONG_SIZE] = '\0';
	return text;
}

static bool send_long(struct bench *bench)
{
	char *text = long_text();

	bench_send(bench,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
		"\"file_write\",\"arguments\":{\"sandbox_id\":\"box\",\"path\":\"p\","
		"\"content\":\"%s\"}}}",
		text);
	free(text);
	return true;
}

static bool check_long_frame(struct bench *bench)
{
	if (bench->n_frames < 1)
		return false;
	cr_expect_gt(bench->frames[0].header.size, LONG_SIZE);
	cr_expect_eq(mcp_links_queued(bench->links), 0);
	return true;
}

Test(link, long_arguments_arrive_whole)
{
	static const bench_step steps[] = {send_long, check_long_frame, NULL};

	bench_run(steps);
}

static bool pause_and_answer(struct bench *bench)
{
	mcp_links_pause(bench->links, true);
	bench_answer(bench, bench_frame_with(bench, "one"), SBX_WIRE_RESULT, "{\"n\":1}");
	send_third(bench);
	return true;
}

/* The third frame was sent after the answer, so the answer has been there for as long. */
static bool check_paused(struct bench *bench)
{
	if (bench->n_frames < 3)
		return false;
	cr_expect_eq(bench->n_lines, 0);
	mcp_links_pause(bench->links, false);
	return true;
}

static bool check_resumed(struct bench *bench)
{
	if (bench->n_lines < 1)
		return false;
	expect_line(bench, 0, "1", "{\"n\":1}");
	return true;
}

Test(link, paused_connections_send_but_do_not_read)
{
	static const bench_step steps[] = {
		send_two, got_two_frames, pause_and_answer, check_paused, check_resumed, NULL};

	bench_run(steps);
}

static bool pause_and_hang_up(struct bench *bench)
{
	mcp_links_pause(bench->links, true);
	(void)shutdown(bench->last_fd, SHUT_RDWR);
	mcp_links_pause(bench->links, false);
	return true;
}

Test(link, daemon_that_went_away_during_a_pause_is_noticed_after_it)
{
	static const bench_step steps[] = {
		send_two, got_two_frames, pause_and_hang_up, got_two_lines, check_hang_up, NULL};

	bench_run(steps);
}
