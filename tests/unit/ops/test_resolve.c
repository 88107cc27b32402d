/* SPDX-License-Identifier: MIT */
/* Two sessions at once: both changes land, or the second is refused and told why. */
#include "workspace.h"

/* a and b start from what before made; a is published first. */
struct pair {
	const char *name;
	const char *before;
	const char *a;
	const char *b;
	const char *conflicts; /* of b; NULL: none, then */
	const char *see;       /* prints what there is after both, */
	const char *expected;
};

static void check_pair(const struct pair *pair)
{
	WORKSPACE struct workspace w;
	SESSION struct session a, b;
	OUTCOME struct outcome first = {0};
	OUTCOME struct outcome second = {0};

	workspace_init(&w);
	if (pair->before)
		workspace_do(&w, "before", pair->before);
	session_begin(&w, &a, "a");
	session_begin(&w, &b, "b");
	session_run(&w, &a, pair->a);
	session_run(&w, &b, pair->b);
	first = session_publish(&w, &a);
	cr_assert_eq(first.r, 0, "%s: %s", pair->name, first.err.message);
	cr_assert_str_eq(outcome_text(&first, "outcome"), "published", "%s: %s", pair->name,
		sbx_json_text(first.result, NULL));
	second = session_publish(&w, &b);
	cr_assert_eq(second.r, 0, "%s: %s", pair->name, second.err.message);
	cr_expect_str_eq(outcome_conflicts(&second), pair->conflicts ? pair->conflicts : "",
		"%s: %s", pair->name, sbx_json_text(second.result, NULL));
	cr_expect_str_eq(outcome_text(&second, "class"),
		pair->conflicts ? "source_conflict" : "(none)", "%s", pair->name);
	if (pair->see)
		cr_expect_str_eq(workspace_see(&w, pair->see), pair->expected, "%s:\n%s",
			pair->name, workspace_see(&w, pair->see));
}

static void check_pairs(const struct pair *pairs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check_pair(&pairs[i]);
}

#define LINES9 "seq -f l%g 9 >f"

static const struct pair merges[] = {
	{"disjoint files", "echo x >x", "echo a >a", "echo b >b", NULL, "ls; cat a b",
		"a\nb\nx\na\nb\n"},
	{"different lines", LINES9, "sed -i 's/l1$/A/' f", "sed -i 's/l9/B/' f", NULL, "cat f",
		"A\nl2\nl3\nl4\nl5\nl6\nl7\nl8\nB\n"},
	{"neighbouring lines", LINES9, "sed -i 's/l1$/A/' f", "sed -i 's/l2/B/' f", NULL,
		"head -3 f", "A\nB\nl3\n"},
	{"without a newline at the end", "printf 'l1\\nl2\\nl3' >f", "sed -i 's/l1/A/' f",
		"sed -i 's/l2/B/' f", NULL, "cat f", "A\nB\nl3"},
	{"one adds the newline", "printf 'l1\\nl2\\nl3' >f", "sed -i 's/l1/A/' f", "echo >>f", NULL,
		"cat f", "A\nl2\nl3\n"},
	{"content here, mode there", LINES9, "sed -i 's/l1$/A/' f", "chmod 750 f", NULL,
		"stat -c %a f; head -1 f", "750\nA\n"},
	{"mode here, content there", LINES9, "chmod 750 f", "sed -i 's/l1$/A/' f", NULL,
		"stat -c %a f; head -1 f", "750\nA\n"},
	{"xattrs of both", LINES9, "setfattr -n user.a -v 1 f", "setfattr -n user.b -v 2 f", NULL,
		"getfattr --only-values -n user.a f; getfattr --only-values -n user.b f", "12"},
	{"content and mode of both", LINES9 "; chmod 644 f", "sed -i 's/l1$/A/' f; chmod 600 f",
		"sed -i 's/l9/B/' f; chmod 600 f", NULL, "stat -c %a f; sed -n '1p;9p' f",
		"600\nA\nB\n"},
	{"content of both, an attribute of each", LINES9 "; setfattr -n user.old -v 0 f",
		"printf 'A\\n' | cat - f >g; cat g >f; rm g; setfattr -n user.a -v 1 f",
		"echo B >>f; setfattr -x user.old f; setfattr -n user.b -v 2 f", NULL,
		"sed -n '1p;$p' f; getfattr -d f | sort",
		"A\nB\n\n# file: f\nuser.a=\"1\"\nuser.b=\"2\"\n"},
	{"the same attribute twice", LINES9, "setfattr -n user.a -v 1 f; echo >x",
		"setfattr -n user.a -v 1 f; echo >y", NULL,
		"getfattr --only-values -n user.a f; ls", "1f\nx\ny\n"},
	{"an owner here, a mode there", LINES9, "chown 5 f", "chmod 640 f", NULL,
		"stat -c '%u %a' f", "5 640\n"},
	{"the newer time of two edits, that of the first", LINES9,
		"sed -i 's/l1$/A/' f; touch -d '2003-03-03 UTC' f",
		"sed -i 's/l9/B/' f; touch -d '2002-02-02 UTC' f", NULL,
		"TZ=UTC date -r f +%Y; sed -n '1p;9p' f", "2003\nA\nB\n"},
	{"the newer time of two edits, that of the second", LINES9,
		"sed -i 's/l1$/A/' f; touch -d '2002-02-02 UTC' f",
		"sed -i 's/l9/B/' f; touch -d '2003-03-03 UTC' f", NULL,
		"TZ=UTC date -r f +%Y; sed -n '1p;9p' f", "2003\nA\nB\n"},
	{"a mode here, an edit with its time there", LINES9,
		"sed -i 's/l1$/A/' f; touch -d '2003-03-03 UTC' f", "chmod 600 f", NULL,
		"TZ=UTC date -r f +%Y; stat -c %a f; head -1 f", "2003\n600\nA\n"},
	{"touched here, written there", LINES9, "echo x >>f", "touch f", NULL, "tail -1 f", "x\n"},
	{"the same edit twice", LINES9, "sed -i 's/l1$/A/' f", "sed -i 's/l1$/A/' f", NULL,
		"head -1 f", "A\n"},
	{"the same file twice", NULL, "echo x >n", "echo x >n", NULL, "cat n", "x\n"},
	{"the same directory twice", NULL, "mkdir -p out/x; echo a >out/x/a",
		"mkdir -p out/x; echo b >out/x/b", NULL, "cd out/x; ls; stat -c %a .",
		"a\nb\n755\n"},
	{"the same directory with another mode", NULL, "mkdir -m 700 out; echo a >out/a",
		"mkdir out; echo b >out/b", NULL, "ls out; stat -c %a out", "a\nb\n700\n"},
	{"both delete", LINES9, "rm f", "rm f; echo g >g", NULL, "ls", "g\n"},
	{"both delete a directory", "mkdir d; echo >d/e", "rm -r d", "rm -r d; echo >g", NULL, "ls",
		"g\n"},
	{"files of one directory", "mkdir q; chmod 750 q", "echo 1 >q/1; chmod 700 q",
		"echo 2 >q/2", NULL, "ls q; stat -c %a q", "1\n2\n700\n"},
	{"a mode of a directory and a file in it", "mkdir q", "echo 1 >q/1", "chmod 711 q", NULL,
		"ls q; stat -c %a q", "1\n711\n"},
	{"delete here, an older neighbour there", "mkdir d; echo 1 >d/1; echo 2 >d/2", "rm d/1",
		"echo x >>d/2", NULL, "ls d; cat d/2", "2\n2\nx\n"},
	{"deleted there, only touched here", LINES9, "rm f; echo >g", "touch f; echo >h", NULL,
		"ls", "g\nh\n"},
	{"touched there, deleted here", LINES9, "touch f; echo >g", "rm f", NULL, "ls", "g\n"},
	{"a directory deleted of which the other deleted a part",
		"mkdir -p d/e; echo >d/e/1; echo >d/2", "rm -r d/e", "rm -r d", NULL, "ls", ""},
	{"deleted inside of what the other deleted", "mkdir -p d/e; echo >d/e/1; echo >d/2",
		"rm -r d", "rm -r d/e; echo >g", NULL, "ls", "g\n"},
	{"renamed here, untouched there", "mkdir d; echo 1 >d/1; echo >x", "echo a >a",
		"mv d e; echo 2 >e/2", NULL, "find . -type f | sort; cat e/1",
		"./a\n./e/1\n./e/2\n./x\n1\n"},
	{"cleared and made anew here, untouched there", "mkdir d; echo 1 >d/1; echo >x",
		"echo a >a", "rm -r d; mkdir d; echo n >d/n", NULL, "find . -type f | sort",
		"./a\n./d/n\n./x\n"},
	{"a link changed on one side", "ln -s a l; echo >x", "echo >>x", "ln -sfn b l", NULL,
		"readlink l", "b\n"},
	{"ignored: the last writer wins",
		"printf '*.log\\n/out/\\n!keep.log\\n' >.gitignore; echo 0 >t.log; mkdir out; echo "
		"0 >out/o",
		"echo a >t.log; echo a >out/o; rm .gitignore",
		"echo b >t.log; echo b >out/o; echo b >n.log", NULL, "cat t.log out/o n.log",
		"b\nb\nb\n"},
	{"ignored deeper down", "mkdir -p p/q; echo '*.o' >p/.gitignore; echo 0 >p/q/x.o",
		"echo a >p/q/x.o", "rm p/q/x.o; echo >g", NULL, "find . -type f | sort",
		"./g\n./p/.gitignore\n"},
	{"renamed and edited around each other", "mkdir d; seq 9 >d/f; seq 9 >g",
		"sed -i 's/1/A/' g", "mv d e; sed -i 's/9/B/' g e/f", NULL,
		"head -1 g; tail -1 g; tail -1 e/f; ls", "A\nB\nB\ne\ng\n"},
};

Test(resolve, both_changes_land)
{
	check_pairs(merges, SBX_N_ELEMENTS(merges));
}

static const struct pair conflicts[] = {
	{"one line twice", LINES9, "sed -i 's/l5/A/' f", "sed -i 's/l5/B/' f; echo n >n",
		"f:content", "cat f | sed -n 5p; ls", "A\nf\n"},
	{"deleted here, edited there", "echo x >x", "echo more >>x", "rm x", "x:delete_modify",
		"cat x", "x\nmore\n"},
	{"edited here, deleted there", "echo x >x", "rm x", "echo more >>x", "x:modify_delete",
		"ls", ""},
	{"deleted here, chmod there", "echo x >x", "chmod 600 x", "rm x", "x:delete_modify", NULL,
		NULL},
	{"chmod here, deleted there", "echo x >x", "rm x", "chmod 600 x", "x:modify_delete", NULL,
		NULL},
	{"deleted and made again here, edited there", "echo x >x", "echo more >>x",
		"rm x; echo y >x", "x:content", NULL, NULL},
	{"directory deleted here, file added there", "mkdir dir; echo 1 >dir/1", "echo n >dir/new",
		"rm -r dir", "dir/new:delete_modify", "cat dir/new", "n\n"},
	{"directory deleted here, file changed deep there",
		"mkdir -p d/e/f; echo 1 >d/e/f/1; echo 2 >d/2", "echo x >>d/e/f/1", "rm -r d",
		"d/e/f/1:delete_modify", NULL, NULL},
	{"directory cleared and made anew here, file added there", "mkdir d; echo 1 >d/1",
		"echo n >d/n", "rm -r d; mkdir d; echo m >d/m", "d/n:delete_modify", "cat d/n",
		"n\n"},
	{"directory cleared and made anew here, file changed there", "mkdir -p d/e; echo 1 >d/e/1",
		"echo n >>d/e/1", "rm -r d; mkdir d; echo m >d/m", "d/e/1:delete_modify", NULL,
		NULL},
	{"directory deleted there, file added here", "mkdir dir; echo 1 >dir/1", "rm -r dir",
		"echo n >dir/new; mkdir dir/s; echo m >dir/s/m",
		"dir/new:modify_delete dir/s:modify_delete dir/s/m:modify_delete", "ls", ""},
	{"directory renamed here, changed there", "mkdir d; echo 1 >d/1; echo 2 >d/2",
		"echo x >>d/1", "mv d e", "d/1:delete_modify", NULL, NULL},
	{"both renamed a directory", "mkdir d; seq 3 >d/1", "mv d a", "mv d b", NULL, "ls",
		"a\nb\n"},
	{"binary", "printf 'a\\0b' >x", "printf 'a\\0c' >x", "printf 'a\\0d' >x", "x:binary", NULL,
		NULL},
	{"added twice, differently", NULL, "echo a >n", "echo b >n", "n:add_add", "cat n", "a\n"},
	{"file here, directory there", NULL, "mkdir n; echo >n/x", "echo b >n", "n:type", NULL,
		NULL},
	{"directory here, file there", NULL, "echo b >n", "mkdir n; echo >n/x", "n:type", NULL,
		NULL},
	{"file replaced by a directory, file edited", "echo x >n", "echo y >n",
		"rm n; mkdir n; echo >n/x", "n:type", NULL, NULL},
	{"file edited, replaced by a directory there", "echo x >n", "rm n; mkdir n; echo >n/x",
		"echo y >n", "n:type", NULL, NULL},
	{"directory replaced by a file, changed there", "mkdir n; echo >n/x", "echo y >n/x",
		"rm -r n; echo y >n", "n/x:delete_modify", NULL, NULL},
	{"changed in what there is a file now", "mkdir n; echo >n/x", "rm -r n; echo y >n",
		"echo y >n/x", "n/x:type", NULL, NULL},
	{"two targets for a link", "ln -s a l", "ln -sfn b l", "ln -sfn c l", "l:symlink",
		"readlink l", "b\n"},
	{"two modes", "echo x >x", "chmod 600 x", "chmod 755 x", "x:metadata", "stat -c %a x",
		"600\n"},
	{"two values of an attribute", "echo x >x", "setfattr -n user.a -v 1 x",
		"setfattr -n user.a -v 2 x", "x:metadata", "getfattr --only-values -n user.a x",
		"1"},
	{"an attribute changed there, removed here", "echo x >x; setfattr -n user.a -v 0 x",
		"setfattr -n user.a -v 1 x", "setfattr -x user.a x", "x:metadata", NULL, NULL},
	{"two owners", "echo x >x", "chown 5 x", "chown 6 x", "x:metadata", NULL, NULL},
	{"edits that merge, and two modes", LINES9, "sed -i 's/l1$/A/' f; chmod 600 f",
		"sed -i 's/l9/B/' f; chmod 755 f", "f:metadata", "sed -n '1p;9p' f", "A\nl9\n"},
	{"two modes of a directory", "mkdir x", "chmod 700 x", "chmod 711 x", "x:metadata", NULL,
		NULL},
	{"two modes of the root", "echo >x", "chmod 700 .; echo >a", "chmod 711 .; echo >b",
		".:metadata", NULL, NULL},
	{"every one is listed", "echo x >x; echo y >y; echo z >z", "echo a >x; rm y; chmod 600 z",
		"echo b >x; echo b >y; rm z; echo n >n",
		"x:content y:modify_delete z:delete_modify", "ls", "x\nz\n"},
	{"append against emptied", "echo x >x", ": >x", "echo y >>x", "x:content", NULL, NULL},
	{"a negated pattern is not ignored",
		"printf '*.log\\n!keep.log\\n' >.gitignore; echo 0 >keep.log", "echo a >keep.log",
		"echo b >keep.log", "keep.log:content", NULL, NULL},
	{"git's own directory is ordinary", "mkdir .git; echo 0 >.git/index; echo '.*' >.gitignore",
		"echo a >.git/index", "echo b >.git/index", ".git/index:content", NULL, NULL},
};

Test(resolve, no_change_is_lost_silently)
{
	check_pairs(conflicts, SBX_N_ELEMENTS(conflicts));
}

Test(resolve, conflicts_tell_both_owners_and_the_lines)
{
	WORKSPACE struct workspace w;
	SESSION struct session a, b;
	OUTCOME struct outcome first = {0};
	OUTCOME struct outcome second = {0};
	struct json_object *conflict;

	workspace_init(&w);
	workspace_do(&w, "before", LINES9);
	session_begin(&w, &a, "a");
	session_begin(&w, &b, "b");
	session_run(&w, &a, "sed -i 's/l5/A/; s/l1$/x\\ny/' f");
	session_run(&w, &b, "sed -i 's/l5/B\\nC/' f");
	first = session_publish(&w, &a);
	workspace_do(&w, "later", "sed -i 's/l9/L/' f");
	second = session_publish(&w, &b);
	conflict = json_object_array_get_idx(sbx_json_member(second.result, "conflicts"), 0);
	cr_expect_str_eq(sbx_json_string(conflict, "ours_owner", ""), "workspace_session:b");
	cr_expect_str_eq(sbx_json_string(conflict, "theirs_owner", ""), "workspace_session:a");
	cr_expect_str_eq(sbx_json_text(sbx_json_member(conflict, "ours_ranges"), NULL),
		"[{\"start_line\":5,\"line_count\":2}]");
	cr_expect_str_eq(sbx_json_text(sbx_json_member(conflict, "theirs_ranges"), NULL),
		"[{\"start_line\":6,\"line_count\":1}]");
	cr_expect_str_eq(sbx_json_text(sbx_json_member(conflict, "base_ranges"), NULL),
		"[{\"start_line\":5,\"line_count\":1}]");
}

/* A third one comes between preparation and commit. */
static const struct {
	const char *name;
	const char *a;
	const char *b;
	const char *conflicts;
	const char *outcome;
	const char *see;
	const char *expected;
} agains[] = {
	{"elsewhere", "echo a >a", "echo b >b", "", "published", "cat a b", "a\nb\n"},
	{"in one directory", "echo a >d/a", "echo b >d/b", "", "published", "cat d/a d/b",
		"a\nb\n"},
	{"in one file", "sed -i s/l1$/A/ f", "sed -i s/l9/B/ f", "", "published",
		"sed -n '1p;9p' f", "A\nB\n"},
	{"on one line", "sed -i s/l5/A/ f", "sed -i s/l5/B/ f", "f:content", "rejected",
		"sed -n 5p f", "A\n"},
	{"the same", "sed -i s/l5/A/ f", "sed -i s/l5/A/ f", "", "no_op", "sed -n 5p f", "A\n"},
	{"below a deleted directory", "echo a >d/a", "rm -r d", "d/a:delete_modify", "rejected",
		"ls d", "a\nz\n"},
	{"with another mode of a directory", "chmod 700 d", "echo b >d/b", "", "published",
		"stat -c %a d; ls d", "700\nb\nz\n"},
};

Test(resolve, a_prepared_layer_is_resolved_again_when_the_head_moved)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(agains); i++) {
		WORKSPACE struct workspace w;
		SESSION struct session a, b;
		OUTCOME struct outcome prepared = {0};
		OUTCOME struct outcome first = {0};
		OUTCOME struct outcome again = {0};
		SBX_BUF struct sbx_buf more = SBX_BUF_INIT;

		workspace_init(&w);
		workspace_do(&w, "before", LINES9 "; mkdir d; echo z >d/z");
		session_begin(&w, &a, "a");
		session_begin(&w, &b, "b");
		session_run(&w, &a, agains[i].a);
		session_run(&w, &b, agains[i].b);
		prepared = session_job(&w, &b, "publish", NULL);
		cr_assert_str_eq(outcome_text(&prepared, "outcome"), "published");
		first = session_publish(&w, &a);
		cr_assert_str_eq(outcome_text(&first, "outcome"), "published");
		cr_assert_eq(sbx_buf_printf(&more, "{\"layer_id\":\"%s\"}",
				     outcome_text(&prepared, "layer_id")),
			0);
		again = session_job(&w, &b, "reresolve", more.data);
		cr_assert_eq(again.r, 0, "%s: %s", agains[i].name, again.err.message);
		cr_expect_str_eq(outcome_text(&again, "outcome"), agains[i].outcome, "%s: %s",
			agains[i].name, sbx_json_text(again.result, NULL));
		cr_expect_str_eq(outcome_conflicts(&again), agains[i].conflicts);
		if (!strcmp(agains[i].outcome, "published"))
			workspace_commit(&w, &again);
		cr_expect_str_eq(workspace_see(&w, agains[i].see), agains[i].expected, "%s: %s",
			agains[i].name, workspace_see(&w, agains[i].see));
	}
}
