/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../../../src/session/filter.h"
#include "filter_cases.h"

/* Runs fn(data) in a child under the filter; its result comes back in shared memory. */
static void in_child(const struct sbx_filter *filter, void (*fn)(int *ret), int *ret)
{
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
			sbx_filter_enter(filter, NULL) < 0)
			_exit(2);
		fn(ret);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "the child ended with status %#x", (unsigned int)status);
}

static int *shared_ints(size_t n)
{
	int *p = mmap(
		NULL, n * sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	return p;
}

static void load_default(struct sbx_filter *ret)
{
	const char *dir = getenv("SBX_SECCOMP_DIR");
	struct sbx_err err = SBX_ERR_INIT;
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/default.json", dir ? dir : "seccomp");
	cr_assert_eq(sbx_filter_load(path, ret, &err), 0, "%s", err.message);
}

static void ask_all(int *ret)
{
	for (size_t i = 0; i < FILTER_N_CASES; i++)
		ret[i] = filter_ask(&filter_cases[i]);
}

#ifdef __x86_64__
static void refused_by_kernel(SBX_UNUSED int sig)
{
	_exit(0);
}

static void ask_i386(int *ret)
{
	/* a kernel without the 32-bit entry answers by SIGSEGV: that refuses it as well */
	*ret = -ENOSYS;
	(void)signal(SIGSEGV, refused_by_kernel);
	*ret = (int)filter_ask_i386();
}

Test(filter, foreign_architectures_get_nothing)
{
	SBX_CLEANUP(sbx_filter_done) struct sbx_filter filter = {0};
	int *got = shared_ints(1);

	load_default(&filter);
	in_child(&filter, ask_i386, got);
	cr_assert_eq(*got, -ENOSYS, "int 0x80 gives %d", *got);
}
#endif

Test(filter, default_policy_answers_each_call_as_listed)
{
	SBX_CLEANUP(sbx_filter_done) struct sbx_filter filter = {0};
	int *got = shared_ints(FILTER_N_CASES + 1);

	load_default(&filter);
	in_child(&filter, ask_all, got);
	for (size_t i = 0; i < FILTER_N_CASES; i++)
		cr_expect_eq(got[i], filter_cases[i].want, "%s: %s, not %s", filter_cases[i].name,
			strerrorname_np(got[i]), strerrorname_np(filter_cases[i].want));
}

Test(filter, default_policy_is_short_enough_to_load_fast)
{
	SBX_CLEANUP(sbx_filter_done) struct sbx_filter filter = {0};

	load_default(&filter);
	cr_assert_leq(filter.n, 1000);
}

static void ask_getppid(int *ret)
{
	errno = 0;
	*ret = syscall(SYS_getppid) < 0 ? errno : 0;
}

static const struct {
	const char *promise;
	const char *policy;
	int want; /* of getppid */
} choices[] = {
	{"the default's error number",
		"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [\"getppid\"], "
		"\"action\": \"SCMP_ACT_ERRNO\"}]}",
		EPERM},
	{"a rule's error number",
		"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [\"getppid\"], "
		"\"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": 17}]}",
		EEXIST},
	{"a refusal with args wins over a permission without",
		"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": ["
		"{\"names\": [\"getppid\"], \"action\": \"SCMP_ACT_LOG\"},"
		"{\"names\": [\"getppid\"], \"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": 17, "
		"\"args\": "
		"[{\"index\": 0, \"value\": 18446744073709551615, \"op\": \"SCMP_CMP_LT\"}]}]}",
		EEXIST},
	{"an index named twice makes alternatives",
		"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": ["
		"{\"names\": [\"getppid\"], \"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": 17, "
		"\"args\": "
		"[{\"index\": 0, \"value\": 1, \"op\": \"SCMP_CMP_LT\"}, "
		"{\"index\": 0, \"value\": 0, \"op\": \"SCMP_CMP_GE\"}]}]}",
		EEXIST},
	{"unknown names are passed over when the default refuses",
		"{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [{\"names\": "
		"[\"no_such_call\", \"getppid\", \"exit_group\", \"munmap\", \"sigaltstack\", "
		"\"sched_yield\", \"futex\", \"getpid\", \"gettid\", \"prctl\", \"rt_sigaction\", "
		"\"rt_sigprocmask\"], \"action\": "
		"\"SCMP_ACT_ALLOW\"}]}",
		0},
	{"the native architecture may be named",
		"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"architectures\": [\"SCMP_ARCH_X86_64\", "
		"\"SCMP_ARCH_AARCH64\"], \"syscalls\": []}",
		0},
};

Test(filter, policies_mean_what_the_header_says)
{
	int *got = shared_ints(1);

	for (size_t i = 0; i < SBX_N_ELEMENTS(choices); i++) {
		SBX_CLEANUP(sbx_filter_done) struct sbx_filter filter = {0};
		struct sbx_err err = SBX_ERR_INIT;
		int r = sbx_filter_compile(
			choices[i].policy, strlen(choices[i].policy), &filter, &err);

		cr_assert_eq(r, 0, "%s: %s", choices[i].promise, err.message);
		in_child(&filter, ask_getppid, got);
		cr_expect_eq(*got, choices[i].want, "%s: %d", choices[i].promise, *got);
	}
}

static const struct {
	const char *policy;
	const char *message; /* part of it */
} bad_policies[] = {
	{"", ""},
	{"[]", "not a JSON object"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\"}", "needs an array"},
	{"{\"syscalls\": []}", "defaultAction"},
	{"{\"defaultAction\": \"SCMP_ACT_NOTIFY\", \"syscalls\": []}", "SCMP_ACT_NOTIFY"},
	{"{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": 5000, \"syscalls\": []}",
		"5000"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [], \"archMap\": []}", "archMap"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"flags\": [], \"syscalls\": []}", "flags"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"architectures\": [\"SCMP_ARCH_VAX\"], "
	 "\"syscalls\": []}",
		"SCMP_ARCH_VAX"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"action\": "
	 "\"SCMP_ACT_ERRNO\"}]}",
		"names"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [\"getppid\"], "
	 "\"action\": \"SCMP_ACT_ERRNO\", \"includes\": {}}]}",
		"includes"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [\"no_such_call\"], "
	 "\"action\": \"SCMP_ACT_ERRNO\"}]}",
		"no_such_call"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [\"getppid\"], "
	 "\"action\": \"SCMP_ACT_ERRNO\", \"args\": [{\"index\": 6, \"value\": 0, \"op\": "
	 "\"SCMP_CMP_EQ\"}]}]}",
		"index 6"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [\"getppid\"], "
	 "\"action\": \"SCMP_ACT_ERRNO\", \"args\": [{\"index\": 0, \"value\": 0, \"op\": "
	 "\"=\"}]}]}",
		"op \"=\""},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [\"getppid\"], "
	 "\"action\": \"SCMP_ACT_ERRNO\"}, {\"names\": [\"getppid\"], \"action\": "
	 "\"SCMP_ACT_TRAP\"}]}",
		"getppid: two rules contradict each other"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\",\n\n\"syscalls\": [}", "line 3"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"architectures\": [null], \"syscalls\": []}",
		"architectures"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"architectures\": {}, \"syscalls\": []}",
		"architectures is not an array"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [\"getppid\"], "
	 "\"action\": \"SCMP_ACT_ERRNO\"}, 7]}",
		"syscalls[1]: not an object"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [null], "
	 "\"action\": \"SCMP_ACT_ERRNO\"}]}",
		"syscalls[0]: names: an element is not a string"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [\"getppid\"], "
	 "\"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": \"EPERM\"}]}",
		"errnoRet is not a number"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [\"getppid\"], "
	 "\"action\": \"SCMP_ACT_ERRNO\", \"args\": {}}]}",
		"args is not an array"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [\"getppid\"], "
	 "\"action\": \"SCMP_ACT_ERRNO\", \"args\": [{\"index\": 0, \"value\": \"7\", \"op\": "
	 "\"SCMP_CMP_EQ\"}]}]}",
		"args: value must be a number"},
	{"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [\"getppid\"], "
	 "\"action\": \"SCMP_ACT_ERRNO\", \"args\": [{\"index\": 0, \"value\": -1, \"op\": "
	 "\"SCMP_CMP_EQ\"}]}]}",
		"args: value must be a number"},
};

Test(filter, bad_policies_are_refused_by_what_is_wrong)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad_policies); i++) {
		SBX_CLEANUP(sbx_filter_done) struct sbx_filter filter = {0};
		struct sbx_err err = SBX_ERR_INIT;
		const char *policy = bad_policies[i].policy;

		cr_expect_lt(
			sbx_filter_compile(policy, strlen(policy), &filter, &err), 0, "%s", policy);
		cr_expect_not_null(strstr(err.message, bad_policies[i].message), "%s: %s", policy,
			err.message);
	}
}

Test(filter, missing_policy_is_named)
{
	SBX_CLEANUP(sbx_filter_done) struct sbx_filter filter = {0};
	struct sbx_err err = SBX_ERR_INIT;

	cr_assert_eq(sbx_filter_load("/does/not/exist.json", &filter, &err), -ENOENT);
	cr_assert_not_null(strstr(err.message, "/does/not/exist.json"));
}
