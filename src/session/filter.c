/* SPDX-License-Identifier: MIT */
/*
 * One policy becomes two libseccomp filters joined end to end. libseccomp cannot refine a rule
 * without arguments by one with arguments (the former swallows the latter), but "ioctl, except
 * TIOCSTI" is just that. So refusals with arguments stand in a first program, which permits
 * all else by jumping to the second, which holds everything else. In front of both, calls with
 * numbers above all named ones get ENOSYS.
 */
#include "filter.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "sbx/fs.h"
#include "sbx/json.h"
#include "sbx/policy.h"

#define X32_BIT    0x40000000 /* x32 calls have it in their number */
#define ARGS_MAX   6
#define CALLS_MAX  1024 /* calls that a policy may name in rules without arguments */
#define TREE_LEVEL 2    /* SCMP_FLTATR_CTL_OPTIMIZE: a binary tree instead of a list */

static inline void release_filter(scmp_filter_ctx *ctx)
{
	if (*ctx)
		seccomp_release(*ctx);
}
#define FILTER SBX_CLEANUP(release_filter)

struct compiler {
	scmp_filter_ctx refusals; /* refusals with arguments; permits all else */
	scmp_filter_ctx rules;    /* all else */
	uint32_t default_action;
	int highest; /* native call number that the policy names */
	size_t n_refusals;
	struct {
		int number;
		uint32_t value;
	} plain[CALLS_MAX]; /* the rules without arguments: libseccomp keeps the first silently */
	size_t n_plain;
};

static const struct action {
	const char *name;
	uint32_t value;
	bool has_errno;
	bool permits;
} actions[] = {
	{"SCMP_ACT_ALLOW", SCMP_ACT_ALLOW, false, true},
	{"SCMP_ACT_LOG", SCMP_ACT_LOG, false, true},
	{"SCMP_ACT_ERRNO", SCMP_ACT_ERRNO(0), true, false},
	{"SCMP_ACT_TRAP", SCMP_ACT_TRAP, false, false},
	{"SCMP_ACT_KILL", SCMP_ACT_KILL_THREAD, false, false},
	{"SCMP_ACT_KILL_THREAD", SCMP_ACT_KILL_THREAD, false, false},
	{"SCMP_ACT_KILL_PROCESS", SCMP_ACT_KILL_PROCESS, false, false},
};

static const struct {
	const char *name;
	enum scmp_compare op;
} operators[] = {
	{"SCMP_CMP_NE", SCMP_CMP_NE},
	{"SCMP_CMP_LT", SCMP_CMP_LT},
	{"SCMP_CMP_LE", SCMP_CMP_LE},
	{"SCMP_CMP_EQ", SCMP_CMP_EQ},
	{"SCMP_CMP_GE", SCMP_CMP_GE},
	{"SCMP_CMP_GT", SCMP_CMP_GT},
	{"SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ},
};

static const struct {
	const char *name;
	uint32_t token;
} architectures[] = {
	{"SCMP_ARCH_X86", SCMP_ARCH_X86},
	{"SCMP_ARCH_X86_64", SCMP_ARCH_X86_64},
	{"SCMP_ARCH_X32", SCMP_ARCH_X32},
	{"SCMP_ARCH_ARM", SCMP_ARCH_ARM},
	{"SCMP_ARCH_AARCH64", SCMP_ARCH_AARCH64},
	{"SCMP_ARCH_PPC64LE", SCMP_ARCH_PPC64LE},
	{"SCMP_ARCH_S390X", SCMP_ARCH_S390X},
	{"SCMP_ARCH_RISCV64", SCMP_ARCH_RISCV64},
};

void sbx_filter_done(struct sbx_filter *filter)
{
	sbx_free_pointer(&filter->code);
	filter->n = 0;
}

/* Refuses members that are not in the NULL-terminated list: nothing of a policy is ignored. */
static int check_members(
	struct json_object *o, const char *const *known, const char *where, struct sbx_err *err)
{
	json_object_object_foreach (o, key, value) {
		size_t i = 0;

		(void)value;
		while (known[i] && strcmp(known[i], key))
			i++;
		if (!known[i])
			return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
				"%s: member \"%s\" is not supported", where, key);
	}
	return 0;
}

static const struct action *find_action(const char *name)
{
	for (size_t i = 0; name && i < SBX_N_ELEMENTS(actions); i++)
		if (!strcmp(actions[i].name, name))
			return &actions[i];
	return NULL;
}

/* The action named by o's member key, with the error number in member errno_key. */
static int read_action(struct json_object *o, const char *key, const char *errno_key,
	const struct action **ret_action, uint32_t *ret_value, struct sbx_err *err)
{
	const char *name = sbx_json_string(o, key, NULL);
	const struct action *action = find_action(name);
	struct json_object *errno_value = sbx_json_member(o, errno_key);
	int64_t number = sbx_json_int(o, errno_key, EPERM);

	if (!action)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "%s \"%s\" is not supported",
			key, name ? name : "");
	if (errno_value && !json_object_is_type(errno_value, json_type_int))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "%s is not a number", errno_key);
	if (number < 1 || number > 4095) /* MAX_ERRNO */
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "%s %lld is not an error number",
			errno_key, (long long)number);
	*ret_action = action;
	*ret_value = action->has_errno ? SCMP_ACT_ERRNO((uint32_t)number) : action->value;
	return 0;
}

/* 64 bits without a sign: what does not fit would become another value. */
static int check_value(struct json_object *o, const char *key, bool required, struct sbx_err *err)
{
	struct json_object *value = sbx_json_member(o, key);

	if ((!value && !required) ||
		(json_object_is_type(value, json_type_int) && (json_object_get_int64(value) >= 0)))
		return 0;
	return sbx_err_kind(
		err, SBX_KIND_INVALID, EINVAL, "args: %s must be a number from 0 to 2^64 - 1", key);
}

static int read_arg(struct json_object *o, struct scmp_arg_cmp *ret, struct sbx_err *err)
{
	static const char *const members[] = {"index", "value", "valueTwo", "op", NULL};
	const char *op = sbx_json_string(o, "op", "");
	int64_t index = sbx_json_int(o, "index", -1);
	size_t i = 0;
	int r;

	if (!json_object_is_type(o, json_type_object))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "args: not an object");
	r = check_members(o, members, "args", err);
	if (r >= 0)
		r = check_value(o, "value", true, err);
	if (r >= 0)
		r = check_value(o, "valueTwo", false, err);
	if (r < 0)
		return r;
	while (i < SBX_N_ELEMENTS(operators) && strcmp(operators[i].name, op))
		i++;
	if (i == SBX_N_ELEMENTS(operators) || index < 0 || index >= ARGS_MAX)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"args: index %lld, op \"%s\" is not supported", (long long)index, op);
	*ret = (struct scmp_arg_cmp){
		.arg = (unsigned int)index,
		.op = operators[i].op,
		.datum_a = json_object_get_uint64(sbx_json_member(o, "value")),
		.datum_b = json_object_get_uint64(sbx_json_member(o, "valueTwo")),
	};
	return 0;
}

struct rule {
	const struct action *action;
	uint32_t value;
	struct scmp_arg_cmp args[ARGS_MAX * 2];
	unsigned int n_args;
	bool alternatives; /* an index is there twice: each comparison is a rule of its own */
};

static int read_args(struct json_object *o, struct rule *rule, struct sbx_err *err)
{
	struct json_object *args = sbx_json_member(o, "args");
	unsigned int seen = 0;
	size_t n;

	if (args && !json_object_is_type(args, json_type_array))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "args is not an array");
	n = args ? json_object_array_length(args) : 0;
	if (n > SBX_N_ELEMENTS(rule->args))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "more than %zu args",
			SBX_N_ELEMENTS(rule->args));
	for (size_t i = 0; i < n; i++) {
		int r = read_arg(json_object_array_get_idx(args, i), &rule->args[i], err);

		if (r < 0)
			return r;
		if (seen & (1u << rule->args[i].arg))
			rule->alternatives = true;
		seen |= 1u << rule->args[i].arg;
	}
	rule->n_args = (unsigned int)n;
	return 0;
}

static int add_to(scmp_filter_ctx ctx, const struct rule *rule, int number, const char *name,
	struct sbx_err *err)
{
	unsigned int step = rule->alternatives ? 1 : rule->n_args;
	unsigned int done = 0;

	do {
		int r = seccomp_rule_add_array(ctx, rule->value, number, step, rule->args + done);

		/* EDOM: this architecture has no such call */
		if (r < 0 && r != -EDOM)
			return sbx_err_kind(err, SBX_KIND_INVALID, -r,
				"%s: libseccomp refuses the rule: %m", name);
		done += step;
	} while (done < rule->n_args);
	return 0;
}

/* A call must not be both permitted and refused. */
static int note_plain(
	struct compiler *c, int number, uint32_t value, const char *name, struct sbx_err *err)
{
	for (size_t i = 0; i < c->n_plain; i++) {
		if (c->plain[i].number != number)
			continue;
		if (c->plain[i].value == value)
			return 0;
		return sbx_err_kind(
			err, SBX_KIND_INVALID, EINVAL, "%s: two rules contradict each other", name);
	}
	if (c->n_plain == CALLS_MAX)
		return sbx_err_kind(err, SBX_KIND_INVALID, E2BIG, "more than %d calls", CALLS_MAX);
	c->plain[c->n_plain].number = number;
	c->plain[c->n_plain++].value = value;
	return 0;
}

static int add_call(
	struct compiler *c, const struct rule *rule, const char *name, struct sbx_err *err)
{
	int number = name ? seccomp_syscall_resolve_name(name) : 0;

	if (!name)
		return sbx_err_kind(
			err, SBX_KIND_INVALID, EINVAL, "names: an element is not a string");
	if (number == __NR_SCMP_ERROR) {
		if (!rule->action->permits && c->default_action == SCMP_ACT_ALLOW)
			return sbx_err_kind(err, SBX_KIND_INVALID, ENOSYS,
				"%s: this libseccomp does not know the call and cannot refuse it; "
				"let the policy refuse by default",
				name);
		return 0;
	}
	c->highest = SBX_MAX(c->highest, number);
	if (!rule->n_args) {
		int r = note_plain(c, number, rule->value, name, err);

		if (r < 0)
			return r;
	}
	if (!rule->action->permits && rule->n_args) {
		c->n_refusals++;
		return add_to(c->refusals, rule, number, name, err);
	}
	/* libseccomp refuses rules that say what the default says */
	return rule->value == c->default_action ? 0 : add_to(c->rules, rule, number, name, err);
}

/* NULL when the element is no string. */
static const char *string_at(struct json_object *array, size_t i)
{
	struct json_object *o = json_object_array_get_idx(array, i);

	return json_object_is_type(o, json_type_string) ? json_object_get_string(o) : NULL;
}

static int add_rule(struct compiler *c, struct json_object *o, struct sbx_err *err)
{
	static const char *const members[] = {
		"names", "action", "errnoRet", "args", "comment", NULL};
	struct json_object *names = sbx_json_member(o, "names");
	struct rule rule = {0};
	int r;

	if (!json_object_is_type(o, json_type_object))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "not an object");
	r = check_members(o, members, "a rule", err);
	if (r >= 0)
		r = read_action(o, "action", "errnoRet", &rule.action, &rule.value, err);
	if (r >= 0)
		r = read_args(o, &rule, err);
	if (r < 0)
		return r;
	if (!json_object_is_type(names, json_type_array))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "a rule has no \"names\"");
	for (size_t i = 0; i < json_object_array_length(names) && r >= 0; i++)
		r = add_call(c, &rule, string_at(names, i), err);
	return r;
}

static int add_architecture(struct compiler *c, const char *name, struct sbx_err *err)
{
	scmp_filter_ctx both[] = {c->refusals, c->rules};

	for (size_t i = 0; name && i < SBX_N_ELEMENTS(architectures); i++) {
		if (strcmp(architectures[i].name, name))
			continue;
		for (size_t k = 0; k < SBX_N_ELEMENTS(both); k++) {
			int r = seccomp_arch_add(both[k], architectures[i].token);

			/* EEXIST: the native one; EINVAL, EDOM: cannot run here anyway */
			if (r < 0 && r != -EEXIST && r != -EINVAL && r != -EDOM)
				return sbx_err_set(err, -r, "architecture %s: %m", name);
		}
		return 0;
	}
	return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "architectures: \"%s\" is not supported",
		name ? name : "");
}

static int add_all(struct compiler *c, struct json_object *policy, struct sbx_err *err)
{
	struct json_object *arches = sbx_json_member(policy, "architectures");
	struct json_object *rules = sbx_json_member(policy, "syscalls");
	int r = 0;

	if (!json_object_is_type(rules, json_type_array))
		return sbx_err_kind(
			err, SBX_KIND_INVALID, EINVAL, "a policy needs an array \"syscalls\"");
	if (arches && !json_object_is_type(arches, json_type_array))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "architectures is not an array");
	for (size_t i = 0; arches && i < json_object_array_length(arches) && r >= 0; i++)
		r = add_architecture(c, string_at(arches, i), err);
	for (size_t i = 0; i < json_object_array_length(rules) && r >= 0; i++) {
		r = add_rule(c, json_object_array_get_idx(rules, i), err);
		if (r < 0)
			return sbx_err_wrap(err, r, "syscalls[%zu]", i);
	}
	return r;
}

static int new_filter(uint32_t default_action, scmp_filter_ctx *ret, struct sbx_err *err)
{
	FILTER scmp_filter_ctx ctx = seccomp_init(default_action);
	int r;

	if (!ctx)
		return sbx_err_set(err, ENOMEM, "make a system call filter: %m");
	r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
	if (r >= 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, TREE_LEVEL);
	if (r < 0)
		return sbx_err_set(err, -r, "set up a system call filter: %m");
	*ret = sbx_take(&ctx);
	return 0;
}

/* Appends ctx's program to ret. */
static int append_program(scmp_filter_ctx ctx, struct sbx_buf *ret, struct sbx_err *err)
{
	SBX_CLOSE int fd = memfd_create("sbx-filter", MFD_CLOEXEC);
	SBX_BUF struct sbx_buf code = SBX_BUF_INIT;
	int r;

	if (fd < 0)
		return sbx_err_set(err, errno, "make a memfd: %m");
	r = seccomp_export_bpf(ctx, fd);
	if (r >= 0)
		r = sbx_fs_read_fd(fd, BPF_MAXINSNS * sizeof(struct sock_filter), &code);
	if (r >= 0)
		r = sbx_buf_append(ret, code.data, code.size);
	return r < 0 ? sbx_err_set(err, -r, "compile a system call filter: %m") : 0;
}

/* Calls above the highest named one get ENOSYS (seccomp.h). Foreign architectures and x32 have
 * other numbers: they go on to the programs behind. */
static int append_newer(struct sbx_buf *ret, int highest)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, seccomp_arch_native(), 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (unsigned int)highest, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	};

	return sbx_buf_append(ret, code, sizeof(code));
}

/* What the first program permits goes on to the second, which follows it. */
static void permit_by_jump(struct sock_filter *code, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (code[i].code == (BPF_RET | BPF_K) && code[i].k == SECCOMP_RET_ALLOW)
			code[i] = (struct sock_filter)BPF_STMT(
				BPF_JMP | BPF_JA, (unsigned int)(n - i - 1));
}

static int join(const struct compiler *c, bool refuses, struct sbx_filter *ret, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf code = SBX_BUF_INIT;
	size_t start, n;
	int r = 0;

	if (refuses && append_newer(&code, c->highest) < 0)
		return sbx_err_set(err, ENOMEM, "compile a system call filter: %m");
	start = code.size;
	if (c->n_refusals) {
		r = append_program(c->refusals, &code, err);
		if (r >= 0)
			permit_by_jump((struct sock_filter *)(void *)(code.data + start),
				(code.size - start) / sizeof(struct sock_filter));
	}
	if (r >= 0)
		r = append_program(c->rules, &code, err);
	if (r < 0)
		return r;
	n = code.size / sizeof(struct sock_filter);
	if (n > BPF_MAXINSNS)
		return sbx_err_kind(err, SBX_KIND_INVALID, E2BIG,
			"the policy compiles to %zu instructions, the kernel takes %d", n,
			BPF_MAXINSNS);
	ret->code = (struct sock_filter *)(void *)sbx_buf_take(&code);
	ret->n = (unsigned short)n;
	return 0;
}

static int compile(struct json_object *policy, struct sbx_filter *ret, struct sbx_err *err)
{
	static const char *const members[] = {
		"defaultAction", "defaultErrnoRet", "architectures", "syscalls", "comment", NULL};
	FILTER scmp_filter_ctx refusals = NULL, rules = NULL;
	const struct action *action;
	struct compiler c = {0};
	int r;

	if (!json_object_is_type(policy, json_type_object))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "not a JSON object");
	r = check_members(policy, members, "policy", err);
	if (r >= 0)
		r = read_action(policy, "defaultAction", "defaultErrnoRet", &action,
			&c.default_action, err);
	if (r >= 0)
		r = new_filter(SCMP_ACT_ALLOW, &refusals, err);
	if (r >= 0)
		r = new_filter(c.default_action, &rules, err);
	if (r < 0)
		return r;
	c.refusals = refusals;
	c.rules = rules;
	r = add_all(&c, policy, err);
	return r < 0 ? r : join(&c, !action->permits, ret, err);
}

int sbx_filter_compile(const char *text, size_t size, struct sbx_filter *ret, struct sbx_err *err)
{
	SBX_JSON struct json_object *policy = NULL;
	int r = sbx_json_parse(text, size, &policy, err);

	return r < 0 ? r : compile(policy, ret, err);
}

/* The policy that comes with the program: beside it in a build tree, else where it is installed. */
static int read_default(struct sbx_buf *ret, struct sbx_err *err)
{
	static const char name[] = "/seccomp/default.json";
	char path[PATH_MAX + sizeof(name)];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
	char *slash;
	int r;

	if (n > 0) {
		path[n] = '\0';
		slash = strrchr(path, '/');
		(void)strcpy(slash ? slash : path, name); /* the buffer has room for it */
		if (sbx_fs_read_at(AT_FDCWD, path, SBX_POLICY_MAX, ret) == 0)
			return 0;
	}
	r = sbx_fs_read_at(AT_FDCWD, SBX_DATADIR "/seccomp/default.json", SBX_POLICY_MAX, ret);
	return r < 0 ? sbx_err_set(err, -r, "read %s: %m", SBX_DATADIR "/seccomp/default.json") : 0;
}

int sbx_filter_load(const char *path, struct sbx_filter *ret, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	int r = 0;

	if (path)
		r = sbx_fs_read_at(AT_FDCWD, path, SBX_POLICY_MAX, &text);
	if (r < 0)
		return sbx_err_set(err, -r, "read seccomp policy %s: %m", path);
	if (!path)
		r = read_default(&text, err);
	if (r >= 0)
		r = sbx_filter_compile(text.data ? text.data : "", text.size, ret, err);
	return r < 0 ? sbx_err_wrap(err, r, "seccomp policy %s", path ? path : "(default)") : 0;
}

int sbx_filter_enter(const struct sbx_filter *filter, struct sbx_err *err)
{
	const struct sock_fprog program = {.len = filter->n, .filter = filter->code};

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return sbx_err_set(err, errno, "enter the system call filter: %m");
	return 0;
}
