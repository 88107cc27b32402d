/* SPDX-License-Identifier: MIT */
/* file_read: windows, refusals, and what a hostile tree may hold. */
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "fixture.h"

#define ARGS(more) "{\"root_at\":\"/workspace\",\"head\":[\"l1\"],\"args\":{" more "}}"

struct reading {
	const char *content; /* of the file */
	const char *window;  /* the arguments */
	const char *answer;
};

static const struct reading readings[] = {
	{"a\nb\nc\n", "\"path\":\"f\"",
		"{\"path\":\"f\",\"content\":\"a\\nb\\nc\\n\",\"start_line\":1,\"num_lines\":3,"
		"\"total_lines\":3,\"bytes_read\":6,\"total_bytes\":6,\"next_offset\":null,"
		"\"truncated\":false}"},
	{"a\nb\nc\n", "\"path\":\"/workspace/./f\",\"offset\":0,\"limit\":2",
		"{\"path\":\"f\",\"content\":\"a\\nb\\n\",\"start_line\":1,\"num_lines\":2,"
		"\"total_lines\":3,\"bytes_read\":4,\"total_bytes\":6,\"next_offset\":3,"
		"\"truncated\":false}"},
	{"a\nb\nc\n", "\"path\":\"f\",\"offset\":3,\"limit\":1",
		"{\"path\":\"f\",\"content\":\"c\\n\",\"start_line\":3,\"num_lines\":1,"
		"\"total_lines\":3,\"bytes_read\":2,\"total_bytes\":6,\"next_offset\":null,"
		"\"truncated\":false}"},
	{"a\nb\nc\n", "\"path\":\"f\",\"offset\":4",
		"{\"path\":\"f\",\"content\":\"\",\"start_line\":4,\"num_lines\":0,"
		"\"total_lines\":3,\"bytes_read\":0,\"total_bytes\":6,\"next_offset\":null,"
		"\"truncated\":false}"},
	{"a\nb\nc\n", "\"path\":\"f\",\"offset\":9223372036854775807",
		"{\"path\":\"f\",\"content\":\"\",\"start_line\":9223372036854775807,"
		"\"num_lines\":0,\"total_lines\":3,\"bytes_read\":0,\"total_bytes\":6,"
		"\"next_offset\":null,\"truncated\":false}"},
	/* no phantom line after a last line without newline, nor in an empty file */
	{"a\nb", "\"path\":\"f\",\"offset\":2",
		"{\"path\":\"f\",\"content\":\"b\",\"start_line\":2,\"num_lines\":1,"
		"\"total_lines\":2,\"bytes_read\":1,\"total_bytes\":3,\"next_offset\":null,"
		"\"truncated\":false}"},
	{"", "\"path\":\"f\"",
		"{\"path\":\"f\",\"content\":\"\",\"start_line\":1,\"num_lines\":0,"
		"\"total_lines\":0,\"bytes_read\":0,\"total_bytes\":0,\"next_offset\":null,"
		"\"truncated\":false}"},
	{"\n", "\"path\":\"f\"",
		"{\"path\":\"f\",\"content\":\"\\n\",\"start_line\":1,\"num_lines\":1,"
		"\"total_lines\":1,\"bytes_read\":1,\"total_bytes\":1,\"next_offset\":null,"
		"\"truncated\":false}"},
	/* line ends and lone CRs come as they are */
	{"a\r\nb\rc\r\n", "\"path\":\"f\"",
		"{\"path\":\"f\",\"content\":\"a\\r\\nb\\rc\\r\\n\",\"start_line\":1,"
		"\"num_lines\":2,\"total_lines\":2,\"bytes_read\":8,\"total_bytes\":8,"
		"\"next_offset\":null,\"truncated\":false}"},
};

Test(file_read, gives_the_window_that_was_asked_for)
{
	FIXTURE struct fixture f;

	fixture_init(&f);
	for (size_t i = 0; i < SBX_N_ELEMENTS(readings); i++) {
		OUTCOME struct outcome o = {0};
		char args[512];

		fixture_file(&f, "l1", "f", readings[i].content);
		(void)snprintf(args, sizeof(args), ARGS("%s"), readings[i].window);
		o = fixture_run(&f, "file_read", args, -EBADF);
		cr_assert_eq(o.r, 0, "%s: %s", readings[i].window, o.err.message);
		cr_expect_str_eq(sbx_json_text(o.result, NULL), readings[i].answer);
	}
}

struct refusal {
	const char *path; /* as JSON */
	enum sbx_err_kind kind;
	const char *words[2];
	const char *details;
};

static const struct refusal refusals[] = {
	{"none", SBX_KIND_NOT_FOUND, {"no file 'none'"}, "{\"path\":\"none\"}"},
	{"text/below", SBX_KIND_NOT_FOUND, {"no file 'text/below'"}, "{\"path\":\"text/below\"}"},
	{"dir", SBX_KIND_INVALID, {"'dir' is a directory"}, "{\"path\":\"dir\"}"},
	{"/workspace", SBX_KIND_INVALID, {"'.' is a directory"}, "{\"path\":\".\"}"},
	{"fifo", SBX_KIND_INVALID, {"'fifo' is a FIFO", "not a regular file"},
		"{\"path\":\"fifo\"}"},
	{"socket", SBX_KIND_INVALID, {"'socket' is a socket"}, "{\"path\":\"socket\"}"},
	{"link", SBX_KIND_INVALID, {"'link' is a symbolic link to 'text'"}, "{\"path\":\"link\"}"},
	{"out", SBX_KIND_INVALID, {"a symbolic link to '/etc/passwd'"}, "{\"path\":\"out\"}"},
	{"loop", SBX_KIND_INVALID, {"a symbolic link to 'loop'"}, "{\"path\":\"loop\"}"},
	{"dangling", SBX_KIND_INVALID, {"a symbolic link"}, "{\"path\":\"dangling\"}"},
	{"sub/inner", SBX_KIND_INVALID, {"goes through a symbolic link"},
		"{\"path\":\"sub/inner\"}"},
	{"../x", SBX_KIND_INVALID, {"'..'"}, "{\"path\":\"../x\"}"},
	{"/etc/passwd", SBX_KIND_INVALID, {"outside the workspace"}, "{\"path\":\"/etc/passwd\"}"},
	{"latin1", SBX_KIND_INVALID, {"not valid UTF-8", "line 2"}, "{\"path\":\"latin1\"}"},
	{"surrogate", SBX_KIND_INVALID, {"not valid UTF-8", "line 1"}, "{\"path\":\"surrogate\"}"},
	{"halved", SBX_KIND_INVALID, {"not valid UTF-8", "line 1"}, "{\"path\":\"halved\"}"},
	{"huge", SBX_KIND_INVALID, {"1099511627776 bytes", "up to 1073741824"},
		"{\"path\":\"huge\"}"},
};

static void make_socket(int dir_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	SBX_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(
		address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/socket", dir_fd);
	cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0, "%m");
}

/* Everything that is no readable text, in a directory. */
static void make_zoo(int fd)
{
	SBX_CLOSE int huge = -EBADF;

	fixture_write(fd, "text", "t\n", 2);
	cr_assert_eq(mkdirat(fd, "dir", 0755), 0);
	fixture_write(fd, "dir/inner", "i\n", 2);
	cr_assert_eq(mkfifoat(fd, "fifo", 0644), 0);
	make_socket(fd);
	cr_assert_eq(symlinkat("text", fd, "link"), 0);
	cr_assert_eq(symlinkat("/etc/passwd", fd, "out"), 0);
	cr_assert_eq(symlinkat("loop", fd, "loop"), 0);
	cr_assert_eq(symlinkat("nowhere", fd, "dangling"), 0);
	cr_assert_eq(symlinkat("dir", fd, "sub"), 0);
	fixture_write(fd, "latin1", "x = 1\n# caf\351\n", 13);
	fixture_write(fd, "surrogate", "\355\240\200", 3);
	fixture_write(fd, "halved", "end \360\237", 6);
	huge = openat(fd, "huge", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	cr_assert_eq(ftruncate(huge, INT64_C(1) << 40), 0);
}

static void expect_refusal(const struct refusal *refusal, const struct outcome *o)
{
	cr_assert_lt(o->r, 0, "%s", refusal->path);
	cr_expect_eq(o->err.kind, refusal->kind, "%s: %s", refusal->path, o->err.message);
	for (size_t i = 0; i < SBX_N_ELEMENTS(refusal->words) && refusal->words[i]; i++)
		cr_expect_not_null(strstr(o->err.message, refusal->words[i]), "%s: %s",
			refusal->path, o->err.message);
	cr_assert_not_null(o->details);
	cr_expect_str_eq(sbx_json_text(o->details, NULL), refusal->details);
}

/* The same answers from the head's layers and from a live session's root. */
Test(file_read, refuses_what_is_no_text_file_by_what_it_is, .timeout = 20)
{
	FIXTURE struct fixture f;
	SBX_CLOSE int tree_fd = -EBADF;

	fixture_init(&f);
	tree_fd = fixture_tree(&f, "l1");
	make_zoo(tree_fd);
	for (size_t i = 0; i < SBX_N_ELEMENTS(refusals); i++) {
		OUTCOME struct outcome head = {0}, live = {0};
		char args[512];

		(void)snprintf(args, sizeof(args), ARGS("\"path\":\"%s\""), refusals[i].path);
		head = fixture_run(&f, "file_read", args, -EBADF);
		expect_refusal(&refusals[i], &head);
		live = fixture_run(&f, "file_read", args, tree_fd);
		expect_refusal(&refusals[i], &live);
	}
}

Test(file_read, refuses_a_limit_outside_1_to_2000)
{
	static const int limits[] = {0, 2001, 1000000};
	FIXTURE struct fixture f;

	fixture_init(&f);
	fixture_file(&f, "l1", "f", "a\n");
	for (size_t i = 0; i < SBX_N_ELEMENTS(limits); i++) {
		OUTCOME struct outcome o = {0};
		char args[256];

		(void)snprintf(args, sizeof(args), ARGS("\"path\":\"f\",\"limit\":%d"), limits[i]);
		o = fixture_run(&f, "file_read", args, -EBADF);
		cr_assert_eq(o.r, -ERANGE);
		cr_expect_eq(o.err.kind, SBX_KIND_INVALID);
		cr_expect_not_null(strstr(o.err.message, "\"limit\": expected 1 to 2000"));
	}
}

/* n times text, then tail. */
static void write_repeated(int dir_fd, const char *name, const char *text, size_t n)
{
	SBX_BUF struct sbx_buf all = SBX_BUF_INIT;

	for (size_t i = 0; i < n; i++)
		cr_assert_eq(sbx_buf_append_string(&all, text), 0);
	fixture_write(dir_fd, name, all.data, all.size);
}

Test(file_read, cuts_a_large_window_at_a_line_end)
{
	FIXTURE struct fixture f;
	OUTCOME struct outcome o = {0};
	SBX_CLOSE int tree_fd = -EBADF;
	char line[1001];

	fixture_init(&f);
	tree_fd = fixture_tree(&f, "l1");
	memset(line, 'x', 999);
	line[999] = '\n';
	line[1000] = '\0';
	write_repeated(tree_fd, "f", line, 400);
	o = fixture_run(&f, "file_read", ARGS("\"path\":\"f\",\"offset\":11"), -EBADF);
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	/* 262 lines of 1000 bytes fit 262144 */
	cr_expect_eq(sbx_json_int(o.result, "num_lines", -1), 262);
	cr_expect_eq(sbx_json_int(o.result, "bytes_read", -1), 262000);
	cr_expect_eq(sbx_json_int(o.result, "next_offset", -1), 273);
	cr_expect_eq(sbx_json_bool(o.result, "truncated", false), true);
	cr_expect_eq(sbx_json_int(o.result, "total_lines", -1), 400);
}

Test(file_read, cuts_a_single_long_line_at_a_character_and_says_how_to_go_on)
{
	FIXTURE struct fixture f;
	OUTCOME struct outcome o = {0};
	SBX_CLOSE int tree_fd = -EBADF;
	const char *content;

	fixture_init(&f);
	tree_fd = fixture_tree(&f, "l1");
	write_repeated(tree_fd, "f", "\u20ac", 3500000); /* 10.5 MB, one line, 3 bytes each */
	o = fixture_run(&f, "file_read", ARGS("\"path\":\"f\""), -EBADF);
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	content = sbx_json_string(o.result, "content", "");
	cr_expect_eq(sbx_json_int(o.result, "bytes_read", -1), 262143); /* a multiple of 3 */
	cr_expect(sbx_utf8_valid(content, strlen(content)));
	cr_expect_not_null(strstr(content, "[line 1 cut after 262143 of 10500000 bytes"));
	cr_expect_not_null(strstr(content, "tail -c +262144 -- 'f'"));
	cr_expect_eq(sbx_json_int(o.result, "num_lines", -1), 1);
	cr_expect_eq(sbx_json_int(o.result, "total_lines", -1), 1);
	cr_expect_eq(sbx_json_bool(o.result, "truncated", false), true);
	cr_expect_null(sbx_json_member(o.result, "next_offset"));
}

Test(file_read, a_long_line_after_others_starts_the_next_window)
{
	FIXTURE struct fixture f;
	OUTCOME struct outcome first = {0}, second = {0};
	SBX_CLOSE int tree_fd = -EBADF;
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

	fixture_init(&f);
	tree_fd = fixture_tree(&f, "l1");
	sbx_buf_append_string(&text, "short\n");
	for (int i = 0; i < 300000; i++)
		sbx_buf_append(&text, "y", 1);
	sbx_buf_append_string(&text, "\nlast\n");
	fixture_write(tree_fd, "f", text.data, text.size);
	first = fixture_run(&f, "file_read", ARGS("\"path\":\"f\""), -EBADF);
	cr_expect_str_eq(sbx_json_string(first.result, "content", ""), "short\n");
	cr_expect_eq(sbx_json_int(first.result, "next_offset", -1), 2);
	second = fixture_run(&f, "file_read", ARGS("\"path\":\"f\",\"offset\":2"), -EBADF);
	cr_expect_eq(sbx_json_int(second.result, "bytes_read", -1), 262144);
	cr_expect_eq(sbx_json_int(second.result, "next_offset", -1), 3);
	cr_expect_not_null(strstr(sbx_json_string(second.result, "content", ""),
		"[line 2 cut after 262144 of 300001 bytes"));
	cr_expect_not_null(
		strstr(sbx_json_string(second.result, "content", ""), "tail -c +262151"));
}

/* Characters of 2 to 4 bytes over every border of the reader's buffer. */
Test(file_read, finds_characters_whole_wherever_a_read_ends)
{
	static const char *const characters[] = {"\u00e9", "\u20ac", "\U0001f600"};
	FIXTURE struct fixture f;
	SBX_CLOSE int tree_fd = -EBADF;

	fixture_init(&f);
	tree_fd = fixture_tree(&f, "l1");
	for (size_t i = 0; i < SBX_N_ELEMENTS(characters); i++) {
		for (size_t shift = 0; shift < 4; shift++) {
			OUTCOME struct outcome o = {0};
			SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

			sbx_buf_append(&text, "xyz", shift);
			while (text.size < 200000)
				sbx_buf_append_string(&text, characters[i]);
			fixture_write(tree_fd, "f", text.data, text.size);
			o = fixture_run(&f, "file_read", ARGS("\"path\":\"f\""), -EBADF);
			cr_assert_eq(o.r, 0, "%s", o.err.message);
			cr_expect_str_eq(sbx_json_string(o.result, "content", ""), text.data);
		}
	}
}

Test(file_read, names_the_line_of_an_invalid_byte_after_a_megabyte)
{
	FIXTURE struct fixture f;
	OUTCOME struct outcome o = {0};
	SBX_CLOSE int tree_fd = -EBADF, fd = -EBADF;

	fixture_init(&f);
	tree_fd = fixture_tree(&f, "l1");
	write_repeated(tree_fd, "f", "0123456789abcde\n", 70000);
	fd = openat(tree_fd, "f", O_WRONLY | O_CLOEXEC);
	cr_assert_eq(pwrite(fd, "\xff", 1, 16 * 65600 + 3), 1);
	o = fixture_run(&f, "file_read", ARGS("\"path\":\"f\",\"limit\":1"), -EBADF);
	cr_expect_eq(o.err.kind, SBX_KIND_INVALID);
	cr_expect_not_null(strstr(o.err.message, "line 65601"), "%s", o.err.message);
}

Test(file_read, reads_near_the_end_of_three_million_lines)
{
	FIXTURE struct fixture f;
	OUTCOME struct outcome o = {0};
	SBX_CLOSE int tree_fd = -EBADF;

	fixture_init(&f);
	tree_fd = fixture_tree(&f, "l1");
	write_repeated(tree_fd, "f", "0123456789abcde\n", 3000000);
	o = fixture_run(&f, "file_read", ARGS("\"path\":\"f\",\"offset\":2999999"), -EBADF);
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_expect_str_eq(
		sbx_json_string(o.result, "content", ""), "0123456789abcde\n0123456789abcde\n");
	cr_expect_eq(sbx_json_int(o.result, "total_lines", -1), 3000000);
	cr_expect_eq(sbx_json_int(o.result, "total_bytes", -1), 48000000);
}

/* Rewrites, shrinks and removes the file, and puts a FIFO and a link in its place, until killed. */
static void torment(int dir_fd)
{
	for (;;) {
		int fd = openat(
			dir_fd, "f", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0644);

		if (fd >= 0) {
			for (int i = 0; i < 3000; i++)
				(void)!write(fd, "0123456789abcde\n", 16);
			(void)!ftruncate(fd, 16 * 1000);
			(void)close(fd);
		}
		(void)unlinkat(dir_fd, "f", 0);
		(void)mkfifoat(dir_fd, "f", 0644);
		(void)unlinkat(dir_fd, "f", 0);
		(void)symlinkat("/etc/passwd", dir_fd, "f");
		(void)unlinkat(dir_fd, "f", 0);
	}
}

/* Whatever is caught of a file that changes all the time, it is whole lines of it or a refusal. */
Test(file_read, a_file_that_changes_while_it_is_read_yields_no_garbage, .timeout = 60)
{
	FIXTURE struct fixture f;
	SBX_CLOSE int tree_fd = -EBADF;
	size_t n_read = 0;
	pid_t pid;

	fixture_init(&f);
	tree_fd = fixture_tree(&f, "live");
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0)
		torment(tree_fd);
	for (int i = 0; i < 20000 && n_read < 200; i++) {
		OUTCOME struct outcome o =
			fixture_run(&f, "file_read", ARGS("\"path\":\"f\",\"limit\":3"), tree_fd);
		int64_t bytes;

		if (o.r < 0) {
			cr_expect(
				o.err.kind == SBX_KIND_INVALID || o.err.kind == SBX_KIND_NOT_FOUND,
				"%s", o.err.message);
			continue;
		}
		n_read++;
		bytes = sbx_json_int(o.result, "total_bytes", -1);
		cr_expect_eq(sbx_json_int(o.result, "total_lines", -1), (bytes + 15) / 16);
		cr_expect(strspn(sbx_json_string(o.result, "content", "x"), "0123456789abcde\n") ==
			  (size_t)sbx_json_int(o.result, "bytes_read", -1));
	}
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_expect_gt(n_read, 0);
}
