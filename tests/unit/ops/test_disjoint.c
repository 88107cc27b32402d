/* SPDX-License-Identifier: MIT */
/*
 * Whether a prepared layer goes on a newer head as it is. "No" only costs time, for then all is
 * resolved again; a wrong "yes" would lose what somebody else published.
 */
#include <time.h>

#include "../../../src/ops/disjoint.h"
#include "workspace.h"

#define WHITEOUT(name) "mknod " name " c 0 0"
#define OPAQUE(name)   "setfattr -n trusted.overlay.opaque -v y " name

/* Scripts that make the two layers' trees; both begin with an empty directory of mode 755. */
static const struct {
	const char *what;
	const char *ours;
	const char *theirs;
	bool disjoint;
} cases[] = {
	{"nothing in theirs", "echo >a", ":", true},
	{"different names", "echo >a", "echo >b", true},
	{"different names in one directory", "mkdir d; echo >d/a", "mkdir d; echo >d/b", true},
	{"far below in one directory", "mkdir -p d/e/f; echo >d/e/f/a",
		"mkdir -p d/e/f; echo >d/e/f/b", true},
	{"a directory here, its sibling there", "mkdir -p d/e; echo >d/e/a",
		"mkdir -p d/f; echo >d/f/a", true},
	{"different deletions", WHITEOUT("a"), WHITEOUT("b"), true},
	{"a name that is the beginning of another", "echo >a", "echo >ab", true},
	{"the same file", "echo x >a", "echo x >a", false},
	{"the same file far below", "mkdir -p d/e/f; echo >d/e/f/a",
		"mkdir -p d/e/f; echo >d/e/f/a; echo >d/e/f/b", false},
	{"the same deletion", WHITEOUT("a"), WHITEOUT("a"), false},
	{"deleted here, written there", WHITEOUT("a"), "echo >a", false},
	{"written here, deleted there", "echo >a", WHITEOUT("a"), false},
	{"a directory deleted here, written in there", WHITEOUT("d"), "mkdir d; echo >d/a", false},
	{"written in here, its directory deleted there", "mkdir d; echo >d/a", WHITEOUT("d"),
		false},
	{"a file here, a directory there", "echo >d", "mkdir d; echo >d/a", false},
	{"a directory here, a file there", "mkdir d; echo >d/a", "echo >d", false},
	{"a directory here, a link to one there", "mkdir d; echo >d/a", "mkdir e; ln -s e d",
		false},
	{"a directory here, a FIFO there", "mkdir d; echo >d/a", "mkfifo d", false},
	{"a directory made anew here", "mkdir d; echo >d/a; " OPAQUE("d"), "mkdir d; echo >d/b",
		false},
	{"a directory made anew there", "mkdir d; echo >d/a", "mkdir d; echo >d/b; " OPAQUE("d"),
		false},
	{"another mode of a directory", "mkdir d; echo >d/a", "mkdir -m 700 d; echo >d/b", false},
	{"another owner of a directory", "mkdir d; echo >d/a", "mkdir d; chown 7 d; echo >d/b",
		false},
	{"another attribute of a directory", "mkdir d; echo >d/a",
		"mkdir d; setfattr -n user.a -v 1 d; echo >d/b", false},
	{"another mode of the root", "echo >a", "chmod 700 .; echo >b", false},
	{"deeper than is worth it", "p=$(printf 'd/%.0s' {1..70}); mkdir -p $p; echo >$p/a",
		"p=$(printf 'd/%.0s' {1..70}); mkdir -p $p; echo >$p/b", false},
	{"one name among many of theirs", "echo >f550", "touch f{0..599}", false},
	{"one name among many of ours", "touch f{0..599}", "echo >f550", false},
	{"no name among many of theirs", "echo >g", "touch f{0..599}", true},
	{"no name among many of ours", "touch f{0..599}", "echo >g", true},
	{"many on both sides", "touch f{0..599}", "touch g{0..599}", true},
	{"many on both sides, one the same", "touch f{0..599} x", "touch g{0..599} x", false},
};

static void make_tree(struct workspace *w, const char *id, const char *script)
{
	SBX_BUF struct sbx_buf all = SBX_BUF_INIT;

	cr_assert_eq(sbx_buf_printf(&all,
			     "rm -rf store/layers/%s; mkdir -p store/layers/%s/tree; "
			     "cd store/layers/%s/tree; %s",
			     id, id, id, script),
		0);
	(void)workspace_look(w, all.data);
}

static void add_layers(struct sbx_stack *stack, const char *const *ids)
{
	for (; *ids; ids++)
		cr_assert_eq(sbx_stack_add(stack, *ids), 0);
}

/* A head of these layers; the session began on the first n_base of them. */
static int are_disjoint(struct workspace *w, const char *const *ids, size_t n_base)
{
	SBX_STACK struct sbx_stack base = SBX_STACK_INIT;
	SBX_STACK struct sbx_stack head = SBX_STACK_INIT;
	struct sbx_err err = SBX_ERR_INIT;
	int r;

	add_layers(&head, ids);
	for (size_t i = 0; i < n_base; i++)
		cr_assert_eq(sbx_stack_add(&base, ids[i]), 0);
	r = sbx_layers_disjoint(w->f.context.layers_fd, "ours", &base, &head, &err);
	cr_assert_geq(r, 0, "%s", err.message);
	return r;
}

Test(disjoint, only_layers_that_speak_of_other_paths_are)
{
	static const char *const ids[] = {"base", "theirs", NULL};
	WORKSPACE struct workspace w;

	workspace_init(&w);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		make_tree(&w, "ours", cases[i].ours);
		make_tree(&w, "theirs", cases[i].theirs);
		cr_expect_eq(are_disjoint(&w, ids, 1), cases[i].disjoint, "%s", cases[i].what);
	}
}

Test(disjoint, every_newer_layer_counts_and_no_older_one)
{
	static const char *const ids[] = {"base", "old", "new1", "new2", NULL};
	static const struct {
		const char *old, *new1, *new2;
		bool disjoint;
	} rows[] = {
		{"echo >a", "echo >b", "echo >c", true},
		{"echo >b", "echo >a", "echo >c", false},
		{"echo >b", "echo >c", "echo >a", false},
	};
	WORKSPACE struct workspace w;

	workspace_init(&w);
	make_tree(&w, "ours", "echo >a");
	for (size_t i = 0; i < SBX_N_ELEMENTS(rows); i++) {
		make_tree(&w, "old", rows[i].old);
		make_tree(&w, "new1", rows[i].new1);
		make_tree(&w, "new2", rows[i].new2);
		cr_expect_eq(are_disjoint(&w, ids, 2), rows[i].disjoint, "row %zu", i);
	}
}

Test(disjoint, directories_of_both_keep_the_newer_time)
{
	static const char *const ids[] = {"base", "theirs", NULL};
	static const struct {
		const char *ours, *theirs, *seen;
	} rows[] = {
		{"2001-01-01 UTC", "2002-02-02 UTC", "2002"},
		{"2002-02-02 UTC", "2001-01-01 UTC", "2002"},
	};
	WORKSPACE struct workspace w;
	char script[128];

	workspace_init(&w);
	for (size_t i = 0; i < SBX_N_ELEMENTS(rows); i++) {
		(void)snprintf(script, sizeof(script), "mkdir d; echo >d/a; touch -d '%s' d",
			rows[i].ours);
		make_tree(&w, "ours", script);
		(void)snprintf(script, sizeof(script), "mkdir d; echo >d/b; touch -d '%s' d",
			rows[i].theirs);
		make_tree(&w, "theirs", script);
		cr_assert_eq(are_disjoint(&w, ids, 1), 1);
		cr_expect_str_eq(workspace_look(&w, "TZ=UTC date -r store/layers/ours/tree/d +%Y |"
						    " tr -d '\\n'"),
			rows[i].seen);
	}
}

Test(disjoint, a_layer_that_is_not_there_is_named)
{
	static const char *const ids[] = {"base", "nosuch", NULL};
	SBX_STACK struct sbx_stack base = SBX_STACK_INIT;
	SBX_STACK struct sbx_stack head = SBX_STACK_INIT;
	struct sbx_err err = SBX_ERR_INIT;
	WORKSPACE struct workspace w;

	workspace_init(&w);
	make_tree(&w, "ours", "echo >a");
	add_layers(&head, ids);
	cr_assert_eq(sbx_stack_add(&base, "base"), 0);
	cr_expect_eq(
		sbx_layers_disjoint(w.f.context.layers_fd, "ours", &base, &head, &err), -ENOENT);
	cr_expect_not_null(strstr(err.message, "nosuch"), "%s", err.message);
}

static double seconds_of(struct workspace *w)
{
	static const char *const ids[] = {"base", "theirs", NULL};
	struct timespec start, end;

	cr_assert_eq(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start), 0);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(are_disjoint(w, ids, 1), 1);
	cr_assert_eq(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end), 0);
	return (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
}

/* A small publication pays little for a large one that came before it, and the other way round. */
Test(disjoint, the_smaller_side_decides_what_it_costs, .timeout = 120)
{
	static const char many[] = "for i in {0..1}; do touch f$i.{0..999}; done";
	static const char also_many[] = "for i in {0..1}; do touch g$i.{0..999}; done";
	WORKSPACE struct workspace w;
	double large;

	workspace_init(&w);
	make_tree(&w, "ours", many);
	make_tree(&w, "theirs", also_many);
	large = seconds_of(&w);
	make_tree(&w, "theirs", "echo >a");
	cr_expect_lt(seconds_of(&w), large / 3, "few against many");
	make_tree(&w, "theirs", many);
	make_tree(&w, "ours", "echo >a");
	cr_expect_lt(seconds_of(&w), large / 3, "many against few");
}
