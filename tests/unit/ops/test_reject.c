/* SPDX-License-Identifier: MIT */
/* What is refused is kept whole, can be looked at, taken away, and tried again. */
#include "sbx/publish.h"
#include "sbx/store.h"
#include "workspace.h"

/* Two sessions that changed one line each to something else; the second is a reject. */
struct refused {
	struct workspace w;
	struct session s;
	struct outcome o;
	char id[SBX_ID_SIZE];
};

static void refused_init(struct refused *r)
{
	OUTCOME struct outcome first = {0};
	SESSION struct session a;

	*r = (struct refused){0};
	workspace_init(&r->w);
	workspace_do(&r->w, "before", "seq 9 >f; seq 5 >gone; mkdir d; seq 3 >d/x");
	session_begin(&r->w, &a, "a");
	session_begin(&r->w, &r->s, "b");
	session_run(&r->w, &a, "sed -i 5s/^/a/ f");
	session_run(&r->w, &r->s,
		"sed -i '5s/^/b/; 9s/^/b/' f; rm gone; mv d e; echo n >n; chmod 4711 n");
	first = session_publish(&r->w, &a);
	r->o = session_publish(&r->w, &r->s);
	cr_assert_str_eq(outcome_text(&r->o, "outcome"), "rejected");
	(void)snprintf(r->id, sizeof(r->id), "%s", outcome_text(&r->o, "reject_id"));
}

static void refused_done(struct refused *r)
{
	outcome_done(&r->o);
	session_done(&r->s);
	workspace_done(&r->w);
}
#define REFUSED SBX_CLEANUP(refused_done)

static struct outcome run_job(struct refused *r, const char *job, const char *more)
{
	SBX_BUF struct sbx_buf args = SBX_BUF_INIT;

	cr_assert_eq(sbx_buf_printf(&args, "{\"args\":{\"reject_id\":\"%s\"%s}}", r->id, more), 0);
	return fixture_run(&r->w.f, job, args.data, -EBADF);
}

static struct outcome retry(struct refused *r)
{
	SBX_BUF struct sbx_buf args = SBX_BUF_INIT;

	cr_assert_eq(sbx_buf_printf(&args, "{\"reject_id\":\"%s\"}", r->id), 0);
	return session_job(&r->w, &r->s, "reject_retry", args.data);
}

Test(reject, is_listed_and_shown_with_its_conflicts_and_paths)
{
	REFUSED struct refused r;
	OUTCOME struct outcome list = {0};
	OUTCOME struct outcome show = {0};
	OUTCOME struct outcome other = {0};
	struct json_object *item;

	refused_init(&r);
	list = fixture_run(&r.w.f, "reject_list", "{}", -EBADF);
	cr_assert_eq(list.r, 0, "%s", list.err.message);
	item = json_object_array_get_idx(sbx_json_member(list.result, "rejects"), 0);
	cr_expect_str_eq(sbx_json_string(item, "reject_id", ""), r.id);
	cr_expect_str_eq(sbx_json_string(item, "class", ""), "source_conflict");
	cr_expect_str_eq(sbx_json_string(item, "owner", ""), "workspace_session:b");
	cr_expect_str_eq(sbx_json_string(item, "command", ""), "a command");
	cr_expect_eq(sbx_json_int(item, "n_conflicts", 0), 1);
	cr_expect_eq(sbx_json_int(item, "base_version", 0), 2);
	cr_expect_eq(sbx_json_int(item, "version", 0), 3);

	show = run_job(&r, "reject_show", "");
	cr_assert_eq(show.r, 0, "%s", show.err.message);
	cr_expect_str_eq(outcome_conflicts(&show), "f:content");
	cr_expect_eq(outcome_int(&show, "n_paths"), 6, "%s", sbx_json_text(show.result, NULL));
	cr_expect_eq(outcome_int(&show, "deleted"), 2);
	cr_expect_not_null(strstr(sbx_json_text(show.result, NULL), "\"renamed_from\":\"d\""));

	(void)snprintf(r.id, sizeof(r.id), "rej_nosuch");
	other = run_job(&r, "reject_show", "");
	cr_expect_eq(other.err.kind, SBX_KIND_NOT_FOUND);
	cr_expect_not_null(strstr(other.err.message, "rej_nosuch"));
}

Test(reject, diff_is_against_its_base)
{
	REFUSED struct refused r;
	OUTCOME struct outcome diff = {0};

	refused_init(&r);
	diff = run_job(&r, "reject_diff", "");
	cr_assert_eq(diff.r, 0, "%s", diff.err.message);
	cr_expect_not_null(strstr(sbx_json_text(diff.result, NULL), "-5\\n+b5\\n"), "%s",
		sbx_json_text(diff.result, NULL));
}

/* A sandbox.json beside the store, as creating a sandbox writes it. */
static void describe_sandbox(struct refused *r, uid_t owner_uid)
{
	struct sbx_sandbox sandbox = {.owner_uid = owner_uid};
	SBX_JSON struct json_object *report = json_object_new_object();
	SBX_BUF struct sbx_buf state = SBX_BUF_INIT;
	SBX_CLOSE int source_fd = fixture_dir(r->w.f.fd, "source");
	struct sbx_err err = SBX_ERR_INIT;

	(void)workspace_look(&r->w, "mkdir state; chown 1234:1235 source");
	cr_assert_eq(sbx_buf_printf(&state, "%s/state", r->w.f.path), 0);
	(void)snprintf(sandbox.id, sizeof(sandbox.id), "box");
	sandbox.root_at = strdup("/workspace");
	sandbox.rootfs = strdup("host");
	sandbox.network = strdup("none");
	sandbox.source = strdup("/src");
	cr_assert_eq(sbx_sandbox_create(state.data, &sandbox, source_fd, NULL, NULL, report, &err),
		0, "%s", err.message);
	sbx_sandbox_done(&sandbox);
	(void)workspace_look(&r->w, "mv state/box/sandbox.json .");
}

Test(reject, export_writes_ordinary_files_and_what_was_deleted)
{
	REFUSED struct refused r;
	OUTCOME struct outcome o = {0};
	OUTCOME struct outcome again = {0};
	SBX_BUF struct sbx_buf more = SBX_BUF_INIT;

	refused_init(&r);
	describe_sandbox(&r, 0);
	cr_assert_eq(sbx_buf_printf(&more, ",\"dest\":\"%s/out\"", r.w.f.path), 0);
	o = run_job(&r, "reject_export", more.data);
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_expect_eq(outcome_int(&o, "n_files"), 3);
	cr_expect_str_eq(
		workspace_look(&r.w,
			"cd out; find . -type f | sort; stat -c '%a %u:%g' files/n files/e; "
			"tr '\\0' ' ' <deleted; sed -n 5p files/f; grep -c rej reject.json"),
		"./deleted\n./files/e/x\n./files/f\n./files/n\n./reject.json\n"
		"4711 1234:1235\n755 1234:1235\nd gone b5\n1\n");
	again = run_job(&r, "reject_export", more.data);
	cr_expect_eq(again.err.kind, SBX_KIND_CONFLICT, "%s", again.err.message);
}

Test(reject, export_writes_only_where_the_owner_of_the_sandbox_may)
{
	REFUSED struct refused r;
	OUTCOME struct outcome denied = {0};
	OUTCOME struct outcome allowed = {0};
	SBX_BUF struct sbx_buf more = SBX_BUF_INIT;

	refused_init(&r);
	describe_sandbox(&r, 4321);
	(void)workspace_look(&r.w, "chmod 755 .; mkdir -m 777 open");
	cr_assert_eq(sbx_buf_printf(&more, ",\"dest\":\"%s/out\"", r.w.f.path), 0);
	denied = run_job(&r, "reject_export", more.data);
	cr_expect_eq(denied.r, -EACCES, "%s", denied.err.message);
	cr_expect_str_eq(workspace_look(&r.w, "ls -d out 2>/dev/null; true"), "");
	sbx_buf_clear(&more);
	cr_assert_eq(sbx_buf_printf(&more, ",\"dest\":\"%s/open/out\"", r.w.f.path), 0);
	allowed = run_job(&r, "reject_export", more.data);
	cr_expect_eq(allowed.r, 0, "%s", allowed.err.message);
	cr_expect_str_eq(
		workspace_look(&r.w, "stat -c '%a %u' open/out; stat -c %u open/out/files/f"),
		"755 4321\n1234\n");
}

Test(reject, drop_removes_it_for_good)
{
	REFUSED struct refused r;
	OUTCOME struct outcome drop = {0};
	OUTCOME struct outcome again = {0};

	refused_init(&r);
	drop = run_job(&r, "reject_drop", "");
	cr_assert_eq(drop.r, 0, "%s", drop.err.message);
	cr_expect_str_eq(workspace_look(&r.w, "ls -A store/rejects"), "");
	again = run_job(&r, "reject_drop", "");
	cr_expect_eq(again.err.kind, SBX_KIND_NOT_FOUND);
}

Test(reject, retry_meets_the_same_conflict_and_loses_nothing)
{
	REFUSED struct refused r;
	OUTCOME struct outcome o = {0};

	refused_init(&r);
	o = retry(&r);
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_expect_str_eq(outcome_text(&o, "outcome"), "rejected");
	cr_expect_str_eq(outcome_text(&o, "reject_id"), r.id);
	cr_expect_str_eq(outcome_conflicts(&o), "f:content");
	cr_expect_str_eq(
		workspace_look(&r.w, "cd store/rejects/*/tree; sed -n '5p;9p' f; find . | sort; "
				     "stat -c %a n; test -c gone -a -c d && echo deleted"),
		"b5\nb9\n.\n./d\n./e\n./e/x\n./f\n./gone\n./n\n4711\ndeleted\n");
}

Test(reject, retry_lands_when_the_conflict_is_gone_with_its_own_owner)
{
	REFUSED struct refused r;
	OUTCOME struct outcome o = {0};

	refused_init(&r);
	workspace_do(&r.w, "c", "sed -i 5s/a// f; sed -i 1s/^/c/ f");
	o = retry(&r);
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_assert_str_eq(
		outcome_text(&o, "outcome"), "published", "%s", sbx_json_text(o.result, NULL));
	workspace_commit(&r.w, &o);
	cr_expect_str_eq(workspace_see(&r.w, "tr '\\n' ' ' <f; ls; stat -c %a n"),
		"c1 2 3 4 b5 6 7 8 b9 e\nf\nn\n4711\n");
	cr_expect_str_eq(workspace_blame(&r.w, "f"), "1+1=c 2+3=before 5+1=b 6+3=before 9+1=b");
	cr_expect_str_eq(workspace_blame(&r.w, "e/x"), "1+3=before");
}

/* The head as a snapshot: what a start finds. */
static void write_head_log(struct refused *r)
{
	SBX_BUF struct sbx_buf script = SBX_BUF_INIT;

	cr_assert_eq(sbx_buf_printf(&script, "l='%d 0 0 snapshot {\"format\":1,\"layers\":[",
			     r->w.version),
		0);
	for (size_t i = 0; i < r->w.head.n; i++)
		cr_assert_eq(
			sbx_buf_printf(&script, "%s\"%s\"", i ? "," : "", r->w.head.ids[i]), 0);
	cr_assert_eq(sbx_buf_append_string(&script,
			     "]}'; echo $(printf %s \"$l\" | sha256sum | cut -c1-16) \"$l\" "
			     ">store/head.log"),
		0);
	(void)workspace_look(&r->w, script.data);
}

/* A crash between the commit and the end of the reject. */
Test(reject, one_that_landed_but_was_not_dropped_is_nobodys_work_any_more)
{
	REFUSED struct refused r;
	OUTCOME struct outcome o = {0};
	OUTCOME struct outcome again = {0};
	SBX_STACK struct sbx_stack bases = SBX_STACK_INIT;
	struct sbx_err err = SBX_ERR_INIT;

	refused_init(&r);
	workspace_do(&r.w, "c", "sed -i 5s/a// f; sed -i 1s/^/c/ f");
	o = retry(&r);
	cr_assert_str_eq(outcome_text(&o, "outcome"), "published");
	workspace_commit(&r.w, &o);
	again = retry(&r);
	cr_assert_eq(again.r, 0, "%s", again.err.message);
	cr_expect_str_eq(outcome_text(&again, "outcome"), "no_op");
	cr_expect_str_eq(workspace_see(&r.w, "tr '\n' ' ' <f"), "c1 2 3 4 b5 6 7 8 b9 ");
	write_head_log(&r);
	cr_assert_eq(sbx_reject_bases(&r.w.f.context, &bases, &err), 0, "%s", err.message);
	cr_expect_eq(bases.n, 0u);
	cr_expect_str_eq(workspace_look(&r.w, "ls -A store/rejects"), "");
	cr_expect_str_eq(workspace_see(&r.w, "tr '\n' ' ' <f"), "c1 2 3 4 b5 6 7 8 b9 ");
}

Test(reject, a_tree_that_cannot_be_taken_is_kept_and_named)
{
	WORKSPACE struct workspace w;
	SESSION struct session s;
	OUTCOME struct outcome o = {0};

	workspace_init(&w);
	session_begin(&w, &s, "s");
	session_run(&w, &s, "mkdir d; echo x >d/x");
	(void)workspace_look(
		&w, "setfattr -n trusted.overlay.redirect -v /no/such sessions/s/upper/d");
	o = session_publish(&w, &s);
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_expect_str_eq(outcome_text(&o, "outcome"), "rejected");
	cr_expect_str_eq(outcome_text(&o, "class"), "publish_error");
	cr_expect_not_null(
		strstr(outcome_text(&o, "message"), "d"), "%s", outcome_text(&o, "message"));
	cr_expect_str_eq(workspace_look(&w, "cat store/rejects/*/tree/d/x"), "x\n");
}

Test(reject, a_damaged_description_is_named_and_hides_no_other)
{
	REFUSED struct refused r;
	OUTCOME struct outcome show = {0};
	OUTCOME struct outcome list = {0};

	refused_init(&r);
	(void)workspace_look(&r.w,
		"sed -i s/workspace_session:b/workspace_session:c/ store/rejects/*/reject.json");
	show = run_job(&r, "reject_show", "");
	cr_expect_neq(show.r, 0);
	cr_expect_not_null(strstr(show.err.message, "checksum"), "%s", show.err.message);
	list = fixture_run(&r.w.f, "reject_list", "{}", -EBADF);
	cr_expect_not_null(strstr(sbx_json_text(list.result, NULL), "\"class\":\"damaged\""));
}

/* A tree on its way, cut off at each step. */
static const struct {
	const char *name;
	const char *cut; /* in the sandbox's directory; the work is in sessions/s/upper before */
	const char *state;
	const char *session; /* what the session has afterwards */
} cuts[] = {
	{"before anything", "true", "not_moved", "x\n"},
	{"marked", "mkdir store/layers/l9; ln -s layers/l9 sessions/s/moved", "not_moved", "x\n"},
	{"moved to a layer",
		"mkdir store/layers/l9; ln -s layers/l9 sessions/s/moved; "
		"mv sessions/s/upper store/layers/l9/tree",
		"brought_back", "x\n"},
	{"in a layer of the head",
		"mkdir store/layers/l1; ln -s layers/l1 sessions/s/moved; "
		"mv sessions/s/upper store/layers/l1/tree",
		"committed", ""},
	{"moved to a reject",
		"mkdir store/rejects/r9; ln -s rejects/r9 sessions/s/moved; "
		"mv sessions/s/upper store/rejects/r9/tree",
		"brought_back", "x\n"},
	{"a complete reject",
		"mkdir store/rejects/r9; ln -s rejects/r9 sessions/s/moved; "
		"mv sessions/s/upper store/rejects/r9/tree; echo >store/rejects/r9/reject.json",
		"rejected", ""},
	{"on from a layer to a reject",
		"mkdir store/layers/l9 store/rejects/r9; ln -s layers/l9 sessions/s/moved; "
		"ln -s rejects/r9 store/layers/l9/moved; mv sessions/s/upper store/rejects/r9/tree",
		"brought_back", "x\n"},
	{"squashed since", "ln -s layers/l9 sessions/s/moved; rm -r sessions/s/upper", "gone", ""},
};

Test(reject, work_that_was_under_way_in_a_crash_comes_back)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(cuts); i++) {
		WORKSPACE struct workspace w;
		SESSION struct session s;
		OUTCOME struct outcome o = {0};

		workspace_init(&w);
		session_begin(&w, &s, "s");
		cr_assert_eq(sbx_stack_add(&w.head, "l1"), 0);
		(void)workspace_look(&w, "echo x >sessions/s/upper/x");
		(void)workspace_look(&w, cuts[i].cut);
		o = session_job(&w, &s, "recover", "{\"reject_id\": null}");
		cr_expect_eq(o.r, 0, "%s: %s", cuts[i].name, o.err.message);
		cr_expect_str_eq(outcome_text(&o, "state"), cuts[i].state, "%s: %s", cuts[i].name,
			outcome_text(&o, "state"));
		cr_expect_str_eq(workspace_look(&w, "cat sessions/s/upper/x 2>/dev/null; true"),
			cuts[i].session, "%s", cuts[i].name);
		cr_expect_str_eq(workspace_look(&w, "ls store/layers | grep l9; true"), "", "%s",
			cuts[i].name);
	}
}

Test(reject, a_session_that_lives_on_after_a_refusal_cannot_write_into_layers)
{
	REFUSED struct refused r;
	OUTCOME struct outcome o = {0};

	refused_init(&r);
	cr_assert_str_eq(workspace_look(&r.w, "stat -c %h store/rejects/*/tree/e/x"), "2\n");
	/* as sandboxd does for a managed session */
	(void)workspace_look(&r.w, "rm store/rejects/*/reject.json");
	o = session_job(&r.w, &r.s, "recover", "{\"reject_id\": null}");
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_expect_str_eq(outcome_text(&o, "state"), "brought_back");
	session_run(&r.w, &r.s, "echo more >>e/x; chmod 600 e/x; sed -i 's/^b//' f");
	cr_expect_str_eq(workspace_see(&r.w, "stat -c '%a %s' d/x"), "644 6\n");
	outcome_done(&o);
	o = session_publish(&r.w, &r.s);
	cr_assert_str_eq(
		outcome_text(&o, "outcome"), "published", "%s", sbx_json_text(o.result, NULL));
	cr_expect_str_eq(
		workspace_see(&r.w, "tail -1 e/x; ls; sed -n '5p;9p' f"), "more\ne\nf\nn\na5\n9\n");
	cr_expect_str_eq(workspace_blame(&r.w, "e/x"), "1+3=before 4+1=b");
}

Test(reject, a_publication_that_fails_late_leaves_the_work_in_the_session)
{
	WORKSPACE struct workspace w;
	SESSION struct session s;
	OUTCOME struct outcome o = {0};

	workspace_init(&w);
	session_begin(&w, &s, "s");
	session_run(&w, &s, "echo x >x");
	/* neither a layer nor a reject can be made */
	(void)workspace_look(&w, "touch store/layers/l0 store/rejects/r0");
	o = session_job(&w, &s, "publish", "{\"layer_id\":\"l0\",\"reject_id\":\"r0\"}");
	cr_expect_lt(o.r, 0);
	cr_expect_str_eq(workspace_look(&w, "cat sessions/s/upper/x"), "x\n");
	outcome_done(&o);
	o = session_publish(&w, &s);
	cr_expect_str_eq(outcome_text(&o, "outcome"), "published");
	cr_expect_str_eq(workspace_see(&w, "cat x"), "x\n");
}
