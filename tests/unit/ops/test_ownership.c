/* SPDX-License-Identifier: MIT */
/* After each publication every line has the owner who last wrote it. */
#include "workspace.h"

#define STEPS_MAX 6

/* Sessions s1, s2, ... one after another; then blame. */
struct story {
	const char *name;
	const char *steps[STEPS_MAX];
	const char *path;
	const char *blame;
};

/* clang-format off: one story, one paragraph */
static const struct story stories[] = {
	{"new", {"printf 'a\\nb\\n' >f"}, "f", "1+2=s1"},
	{"edited", {"seq 5 >f", "sed -i 3s/^/x/ f"}, "f", "1+2=s1 3+1=s2 4+2=s1"},
	{"appended without a newline", {"printf 'a\\nb' >f", "printf '\\nc' >>f"}, "f",
		"1+2=s1 3+1=s2"},
	{"line ends converted", {"printf 'a\\nb\\n' >f", "sed -i 's/$/\\r/' f"}, "f", "1+2=s1"},
	{"empty", {": >f"}, "f", ""},
	{"chmod and touch", {"seq 3 >f", "chmod 600 f", "touch f"}, "f", "1+3=s1"},
	{"renamed", {"seq 10 >a", "sed -i 3s/^/x/ a", "mv a b"}, "b", "1+2=s1 3+1=s2 4+7=s1"},
	{"renamed and edited", {"seq 10 >a", "mv a b; sed -i 3s/^/x/ b"}, "b",
		"1+2=s1 3+1=s2 4+7=s1"},
	{"a copy is new", {"seq 10 >a", "cp a c"}, "c", "1+10=s2"},
	{"created again", {"seq 10 >a", "rm a", "seq 20 22 >a"}, "a", "1+3=s3"},
	{"the old name, used again", {"seq 10 >a", "mv a b; seq 30 33 >a"}, "a", "1+4=s2"},
	{"its directory renamed", {"mkdir -p p/q; seq 10 >p/q/a", "sed -i 3s/^/x/ p/q/a", "mv p l"},
		"l/q/a", "1+2=s1 3+1=s2 4+7=s1"},
	{"its directory renamed by rename(2), then edited",
		{"mkdir -p p/q; seq 10 >p/q/a",
			"python3 -c \"import os; os.rename('p','l')\"; sed -i 1s/^/x/ l/q/a"},
		"l/q/a", "1+1=s2 2+9=s1"},
	{"nested renames", {"mkdir -p p/q; seq 10 >p/q/a", "mv p l; mv l/q l/r; mv l m"}, "m/r/a",
		"1+10=s1"},
	{"two directories swapped",
		{"mkdir a b; seq 3 >a/x", "seq 11 13 >b/x", "mv a t; mv b a; mv t b"}, "a/x",
		"1+3=s2"},
	{"binary", {"printf 'a\\0b\\n' >f", "printf 'a\\0c\\n' >f"}, "f", "1+1=s2"},
	{"binary, renamed", {"printf 'a\\0b\\n' >f", "mv f g"}, "g", "1+1=s1"},
	{"binary, moved by copy and delete",
		{"mkdir d; printf 'a\\0b\\n' >d/f", "mkdir e; cp -r d e; rm -r d"}, "e/d/f",
		"1+1=s1"},
	{"binary, copied", {"printf 'a\\0b\\n' >f", "cp f g"}, "g", "1+1=s2"},
	{"binary, renamed and copied: one of them keeps its owner",
		{"printf 'a\\0b\\n' >f", "mv f g; cp g h"}, "h", "1+1=s2"},
	{"binary, renamed and written", {"printf 'a\\0b\\n' >f", "mv f g; echo >>g"}, "g",
		"1+2=s2"},
	{"binary, over another one", {"seq 9 | tr 1 '\\0' >f; seq 8 | tr 1 '\\0' >g", "mv f g"},
		"g", "1+9=s2"},
	{"binary, over another one, long enough to tell",
		{"seq 40 | tr 1 '\\0' >f; seq 50 | tr 1 '\\0' >g", "mv f g"}, "g", "1+40=s1"},
	{"ignored: one owner",
		{"echo '*.log' >.gitignore; seq 3 >x.log", "seq 3 >y.log; echo 4 >>x.log"}, "x.log",
		"1+4=s2"},
	{"moved between files",
		{"for i in $(seq 40); do echo \"function number $i does this\"; done >a; echo b >b",
			"head -20 a >>b; sed -i 1,20d a"},
		"b", "1+21=s1"},
};
/* clang-format on */

static void tell(const struct story *story)
{
	WORKSPACE struct workspace w;
	char name[16];

	workspace_init(&w);
	for (int i = 0; i < STEPS_MAX && story->steps[i]; i++) {
		(void)snprintf(name, sizeof(name), "s%d", i + 1);
		workspace_do(&w, name, story->steps[i]);
	}
	cr_expect_str_eq(workspace_blame(&w, story->path), story->blame, "%s: %s", story->name,
		workspace_blame(&w, story->path));
}

Test(ownership, lines_belong_to_who_last_wrote_them)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(stories); i++)
		tell(&stories[i]);
}

Test(ownership, untouched_base_content_has_no_record_and_touched_has_original_lines)
{
	WORKSPACE struct workspace w;

	workspace_init(&w);
	fixture_file(&w.f, "base", "old", "1\n2\n3\n");
	fixture_file(&w.f, "base", "same", "1\n");
	(void)workspace_look(&w, "printf 'a\\0b' >store/layers/base/tree/bin");
	workspace_do(&w, "a", "sed -i 2s/^/x/ old");
	cr_expect_str_eq(workspace_blame(&w, "old"), "1+1=original 2+1=a 3+1=original");
	cr_expect_str_eq(workspace_blame(&w, "same"), "none");
	cr_expect_str_eq(workspace_blame(&w, "bin"), "none");
	workspace_do(&w, "b", "mkdir d; mv same d/same; mv d e; mv e f; mv bin f/bin");
	cr_expect_str_eq(workspace_blame(&w, "f/bin"), "1+1=original");
	cr_expect_str_eq(workspace_blame(&w, "f/same"), "1+1=original");
}

Test(ownership, both_sides_of_a_merge_keep_their_lines)
{
	WORKSPACE struct workspace w;
	SESSION struct session a, b;
	OUTCOME struct outcome first = {0};
	OUTCOME struct outcome second = {0};

	workspace_init(&w);
	workspace_do(&w, "before", "seq 9 >f");
	session_begin(&w, &a, "a");
	session_begin(&w, &b, "b");
	session_run(&w, &a, "sed -i '2s/^/x/; 4s/^/x/' f");
	session_run(&w, &b, "sed -i '3s/^/y/; 8s/^/y/' f");
	first = session_publish(&w, &a);
	second = session_publish(&w, &b);
	cr_assert_str_eq(outcome_text(&second, "outcome"), "published");
	cr_expect_eq(outcome_int(&second, "merged"), 1);
	cr_expect_str_eq(workspace_blame(&w, "f"),
		"1+1=before 2+1=a 3+1=b 4+1=a 5+3=before 8+1=b 9+1=before");
}

Test(ownership, a_layer_resolved_again_keeps_what_it_knew)
{
	WORKSPACE struct workspace w;
	SESSION struct session a, b;
	OUTCOME struct outcome prepared = {0};
	OUTCOME struct outcome first = {0};
	OUTCOME struct outcome again = {0};
	SBX_BUF struct sbx_buf more = SBX_BUF_INIT;

	workspace_init(&w);
	workspace_do(&w, "before", "seq 9 >f; mkdir d; seq 5 >d/g");
	session_begin(&w, &a, "a");
	session_begin(&w, &b, "b");
	session_run(&w, &a, "sed -i 2s/^/x/ f");
	session_run(&w, &b, "sed -i 8s/^/y/ f; mv d e; sed -i 1s/^/y/ e/g");
	prepared = session_job(&w, &b, "publish", NULL);
	first = session_publish(&w, &a);
	cr_assert_eq(
		sbx_buf_printf(&more, "{\"layer_id\":\"%s\"}", outcome_text(&prepared, "layer_id")),
		0);
	again = session_job(&w, &b, "reresolve", more.data);
	cr_assert_str_eq(outcome_text(&again, "outcome"), "published");
	workspace_commit(&w, &again);
	cr_expect_str_eq(workspace_blame(&w, "f"), "1+1=before 2+1=a 3+5=before 8+1=b 9+1=before");
	cr_expect_str_eq(workspace_blame(&w, "e/g"), "1+1=b 2+4=before");
}
