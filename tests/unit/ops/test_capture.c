/* SPDX-License-Identifier: MIT */
/* Upper directories made by hand: what an overlay writes, and what only a crash or a fault can. */
#include "workspace.h"

#include <sys/resource.h>

#include "../../../src/ops/capture.h"

struct hand_made {
	const char *name;
	const char *base;  /* script in the base layer's tree */
	const char *upper; /* script in the upper directory */
	const char *changes;
	const char *tree; /* what is left of the upper: name and kind, "O" for opaque */
};

/* "path=change path=change" of all entries, containers left out. */
static void describe(const struct sbx_changeset *set, struct sbx_buf *ret)
{
	SBX_BUF struct sbx_buf path = SBX_BUF_INIT;

	cr_assert_eq(sbx_buf_append_string(ret, ""), 0);
	for (uint32_t i = 0; i < set->n; i++) {
		if (set->entries[i].change == SBX_CHANGE_NONE)
			continue;
		cr_assert_eq(sbx_changeset_path(set, i, &path), 0);
		cr_assert_eq(sbx_buf_printf(ret, "%s%s=%s", ret->size ? " " : "",
				     *path.data ? path.data : ".",
				     sbx_change_name((enum sbx_change)set->entries[i].change)),
			0);
	}
}

#define LIST_TREE                                                                                  \
	"cd sessions/s/upper; find . -mindepth 1 | sort | while read -r f; do "                    \
	"k=$(stat -c %F \"$f\" | cut -c1-3); "                                                     \
	"o=$(getfattr -h --only-values -n trusted.overlay.opaque \"$f\" 2>/dev/null); "            \
	"printf '%s:%s%s ' \"${f#./}\" \"$k\" \"${o:+O}\"; done"

#define MARKS                                                                                      \
	"cd sessions/s/upper; getfattr -Rhdm 'overlay' . 2>/dev/null | grep = | grep -v "          \
	"overlay.opaque=; true"

static int capture(
	struct workspace *w, enum sbx_capture_flags flags, struct sbx_buf *ret, struct sbx_err *err)
{
	SBX_CHANGESET struct sbx_changeset set = SBX_CHANGESET_INIT;
	SBX_VIEW struct sbx_view *base = NULL;
	SBX_CLOSE int home_fd = fixture_dir(w->f.context.sessions_fd, "s");
	SBX_CLOSE int tree_fd = fixture_dir(home_fd, "upper");
	SBX_CLOSE int scratch_fd = fixture_dir(home_fd, "scratch");
	int r;

	cr_assert_eq(sbx_view_open(w->f.context.layers_fd, &w->head, &base, err), 0);
	r = sbx_capture(tree_fd, flags & SBX_CAPTURE_READ_ONLY ? -EBADF : scratch_fd, base, flags,
		&set, err);
	if (r == 0)
		describe(&set, ret);
	return r;
}

static void prepare(struct workspace *w, struct session *s, const struct hand_made *made)
{
	SBX_BUF struct sbx_buf script = SBX_BUF_INIT;

	workspace_init(w);
	session_begin(w, s, "s");
	cr_assert_eq(
		sbx_buf_printf(&script,
			"set -e; umask 022; O=trusted.overlay; cd store/layers/base/tree; %s\n"
			"cd ../../../../sessions/s/upper; B=../../../store/layers/base/tree; %s",
			made->base, made->upper),
		0);
	(void)workspace_look(w, script.data);
}

static void check(const struct hand_made *made)
{
	WORKSPACE struct workspace w;
	SESSION struct session s;
	SBX_BUF struct sbx_buf changes = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf again = SBX_BUF_INIT;
	struct sbx_err err = SBX_ERR_INIT;

	prepare(&w, &s, made);
	cr_assert_eq(capture(&w, 0, &changes, &err), 0, "%s: %s", made->name, err.message);
	cr_expect_str_eq(changes.data, made->changes, "%s: %s", made->name, changes.data);
	cr_expect_str_eq(workspace_look(&w, LIST_TREE), made->tree, "%s: %s", made->name,
		workspace_look(&w, LIST_TREE));
	cr_expect_str_eq(workspace_look(&w, MARKS), "", "%s", made->name);
	/* a capture that was cut off is simply done again */
	cr_assert_eq(capture(&w, 0, &again, &err), 0, "%s: %s", made->name, err.message);
	cr_expect_str_eq(again.data, made->changes, "%s, again: %s", made->name, again.data);
	cr_expect_str_eq(workspace_look(&w, LIST_TREE), made->tree, "%s, again", made->name);
}

/* clang-format off: one upper, one paragraph */
static const struct hand_made uppers[] = {
	{"a copy-up that changed nothing", "echo x >f; mkdir d; echo y >d/g",
		"mkdir d; cp -p $B/f f; cp -p $B/d/g d/g", "", ""},
	{"a copy-up in a directory that changed", "mkdir d; echo y >d/g",
		"mkdir -m 700 d; cp -p $B/d/g d/g", "d=metadata", "d:dir "},
	{"a whiteout of nothing", "true", "mknod gone c 0 0; mkdir n; mknod n/gone c 0 0", "n=add",
		"n:dir "},
	{"a whiteout of something", "echo x >f; mkdir d", "mknod f c 0 0; mknod d c 0 0",
		"d=delete f=delete", "d:cha f:cha "},
	{"opaque for speed alone", "true",
		"mkdir out; setfattr -n $O.opaque -v y out; echo a >out/a", "out=add out/a=add",
		"out:dir out/a:reg "},
	{"opaque over an empty directory", "mkdir out",
		"mkdir out; setfattr -n $O.opaque -v y out; echo a >out/a", "out/a=add",
		"out:dir out/a:reg "},
	{"opaque over something", "mkdir -p d/e; echo 1 >d/1; echo 2 >d/e/2",
		"mkdir d; setfattr -n $O.opaque -v y d; echo n >d/n",
		"d/1=delete d/e=delete d/n=add", "d:dirO d/n:reg "},
	{"opaque, and the same made anew", "mkdir -p d/e; echo 1 >d/1; echo 2 >d/e/2",
		"mkdir -p d/e; setfattr -n $O.opaque -v y d; setfattr -n $O.opaque -v y d/e; cp -p "
		"$B/d/1 d/1; echo m >d/e/m",
		"d/e/2=delete d/e/m=add", "d:dirO d/1:reg d/e:dir d/e/m:reg "},
	{"whiteouts below an opaque directory", "mkdir d; echo 1 >d/1",
		"mkdir d; setfattr -n $O.opaque -v y d; mknod d/1 c 0 0; mknod d/2 c 0 0; echo "
		">d/n",
		"d/1=delete d/n=add", "d:dirO d/n:reg "},
	{"whiteouts made of attributes", "mkdir d; echo 1 >d/1; echo 2 >d/2",
		"mkdir d; setfattr -n $O.opaque -v x d; : >d/1; setfattr -n $O.whiteout -v y d/1; "
		": >d/e",
		"d/1=delete d/e=add", "d:dir d/1:cha d/e:reg "},
	{"marks of all kinds", "mkdir d; echo x >f; ln -s t l",
		"mkdir d; for m in origin impure nlink uuid protattr upper; do setfattr -n $O.$m "
		"-v 1 d; setfattr -n $O.$m -v 1 .; done; "
		"echo y >f; setfattr -n $O.origin -v 1 f; ln -s u l; setfattr -h -n $O.origin -v 1 "
		"l; setfattr -n $O.overlay.opaque -v y f; "
		"mkdir n; setfattr -n user.overlay.opaque -v y n; mkfifo p; setfattr -h -n "
		"$O.origin -v 1 p",
		"f=modify l=modify n=add p=add", "f:reg l:sym n:dir p:fif "},
	{"a renamed directory", "mkdir -p d/e; echo 1 >d/1; echo 2 >d/e/2",
		"mknod d c 0 0; mkdir n; setfattr -n $O.redirect -v d n",
		"d=delete n=add n/1=add n/e=add n/e/2=add",
		"d:cha n:dir n/1:reg n/e:dir n/e/2:reg "},
	{"by an absolute name, with a whiteout and an edit",
		"mkdir -p d/e; echo 1 >d/1; echo 2 >d/e/2; echo 3 >d/3",
		"mknod d c 0 0; mkdir -p m/n/e; setfattr -n $O.redirect -v /d m/n; mknod m/n/1 c 0 "
		"0; echo x >m/n/e/2",
		"d=delete m=add m/n=add m/n/3=add m/n/e=add m/n/e/2=add",
		"d:cha m:dir m/n:dir m/n/3:reg m/n/e:dir m/n/e/2:reg "},
	{"over a directory that the base has", "mkdir d n; echo 1 >d/1; echo 2 >n/2",
		"mknod d c 0 0; mkdir n; setfattr -n $O.redirect -v d n",
		"d=delete n/1=add n/2=delete", "d:cha n:dirO n/1:reg "},
	{"renamed inside a renamed one", "mkdir -p d/e; echo 1 >d/e/1; mkdir d/g; echo 2 >d/g/2",
		"mknod d c 0 0; mkdir -p n/f; setfattr -n $O.redirect -v d n; setfattr -n "
		"$O.redirect -v e n/f; mknod n/e c 0 0",
		"d=delete n=add n/f=add n/f/1=add n/g=add n/g/2=add",
		"d:cha n:dir n/f:dir n/f/1:reg n/g:dir n/g/2:reg "},
	{"cut off while it was made whole", "mkdir -p d/e; echo 1 >d/1; echo 2 >d/e/2; echo 3 >d/3",
		"mknod d c 0 0; mkdir -p n/e; setfattr -n $O.redirect -v d n; ln $B/d/1 n/1; mknod "
		"n/3 c 0 0",
		"d=delete n=add n/1=add n/e=add n/e/2=add",
		"d:cha n:dir n/1:reg n/e:dir n/e/2:reg "},
	{"cut off before the whiteouts went", "mkdir d; echo 1 >d/1; echo 3 >d/3",
		"mknod d c 0 0; mkdir n; setfattr -n $O.opaque -v y n; setfattr -n "
		"trusted.sbx.origin -v d n; ln $B/d/1 n/1; mknod n/3 c 0 0",
		"d=delete n=add n/1=add", "d:cha n:dir n/1:reg "},
	{"sockets and devices", "echo x >s; mkdir d; echo y >d/t",
		"mknod s c 1 3; mkdir d; mknod d/b b 7 0; mknod n p", "n=add s=delete",
		"n:fif s:cha "},
	{"hard links to a copy-up", "echo 1 >a", "cp -p $B/a a; ln a b", "b=add", "a:reg b:reg "},
	{"kinds change", "echo 1 >f; mkdir d; echo 2 >d/2; ln -s x l",
		"mkdir f; echo i >f/i; echo now >d; echo own >l",
		"d=replace f=replace f/i=add l=replace", "d:reg f:dir f/i:reg l:reg "},
	{"the root's mode", "true", "chmod 700 .", ".=metadata", ""},
};
/* clang-format on */

Test(capture, uppers_become_changes_and_plain_layers)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(uppers); i++)
		check(&uppers[i]);
}

#define STATE                                                                                      \
	"cd sessions/s/upper; find . -printf '%P %y %m %n %i %T@ %C@\\n' | sort; "                 \
	"getfattr -Rhdm - . 2>/dev/null"

Test(capture, looking_changes_nothing)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(uppers); i++) {
		WORKSPACE struct workspace w;
		SESSION struct session s;
		SBX_BUF struct sbx_buf changes = SBX_BUF_INIT;
		struct sbx_err err = SBX_ERR_INIT;
		SBX_FREE char *before = NULL;

		prepare(&w, &s, &uppers[i]);
		before = strdup(workspace_look(&w, STATE));
		cr_assert_eq(capture(&w, SBX_CAPTURE_READ_ONLY, &changes, &err), 0, "%s: %s",
			uppers[i].name, err.message);
		cr_expect_str_eq(workspace_look(&w, STATE), before, "%s", uppers[i].name);
	}
}

static const struct {
	const char *redirect;
	int error;
} bad_redirects[] = {
	{"..", EBADMSG},
	{"/", EBADMSG},
	{"a/b", EBADMSG},
	{"/d/../d", EBADMSG},
	{"/d//e", EBADMSG},
	{"/gone", ENOENT},
	{"/file", ENOTDIR},
	{"/link", ENOTDIR},
};

Test(capture, marks_that_no_kernel_wrote_are_refused_with_the_path)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad_redirects); i++) {
		WORKSPACE struct workspace w;
		SESSION struct session s;
		SBX_BUF struct sbx_buf changes = SBX_BUF_INIT;
		SBX_BUF struct sbx_buf upper = SBX_BUF_INIT;
		struct hand_made made = {.base = "mkdir d; echo >file; ln -s d link"};
		struct sbx_err err = SBX_ERR_INIT;

		cr_assert_eq(
			sbx_buf_printf(&upper, "mkdir -p t/n; setfattr -n $O.redirect -v %s t/n",
				bad_redirects[i].redirect),
			0);
		made.upper = upper.data;
		prepare(&w, &s, &made);
		cr_expect_eq(capture(&w, 0, &changes, &err), -bad_redirects[i].error, "%s: %s",
			bad_redirects[i].redirect, err.message);
		cr_expect_not_null(strstr(err.message, "t/n"), "%s", err.message);
	}
}

Test(capture, depth_needs_few_descriptors)
{
	WORKSPACE struct workspace w;
	SESSION struct session s;
	SBX_BUF struct sbx_buf changes = SBX_BUF_INIT;
	struct sbx_err err = SBX_ERR_INIT;
	struct hand_made made = {.base = "python3 -c \"import os\nfor i in range(3000): "
					 "os.mkdir('d'); os.chdir('d')\"",
		.upper = "python3 -c \"import os\nfor i in range(3000): os.mkdir('d'); "
			 "os.chdir('d')\n"
			 "open('f','w')\""};
	struct rlimit few = {128, 128};

	prepare(&w, &s, &made);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	cr_assert_eq(capture(&w, 0, &changes, &err), 0, "%s", err.message);
	cr_expect_not_null(strstr(changes.data, "/f=add"));
}
