/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "sbx/fs.h"

static const struct {
	const char *given;
	size_t size; /* 0: strlen */
	const char *root_at;
	const char *expected; /* NULL: refused */
	const char *says;     /* part of the refusal */
} cases[] = {
	{"a", 0, "/workspace", "a", NULL},
	{"a/b//c/./d/", 0, "/workspace", "a/b/c/d", NULL},
	{"./.", 0, "/workspace", "", NULL},
	{"/workspace", 0, "/workspace", "", NULL},
	{"/workspace/x", 0, "/workspace", "x", NULL},
	{"/workspace/x", 0, "/workspace/", "x", NULL},
	{"/x", 0, "/", "x", NULL},
	{"/workspacex", 0, "/workspace", NULL, "outside the workspace"},
	{"/etc/passwd", 0, "/workspace", NULL, "outside the workspace"},
	{"..", 0, "/workspace", NULL, "'..'"},
	{"a/../b", 0, "/workspace", NULL, "'..'"},
	{"/workspace/..", 0, "/workspace", NULL, "'..'"},
	{"...", 0, "/workspace", "...", NULL},
	{"a\\b c", 0, "/workspace", "a\\b c", NULL},
	{"a\nb", 0, "/workspace", "a\nb", NULL},
	{"a\0b", 3, "/workspace", NULL, "U+0000"},
	{"", 0, "/workspace", NULL, "empty"},
};

Test(path, keeps_to_the_rules_of_the_contract)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		size_t size = cases[i].size ? cases[i].size : strlen(cases[i].given);
		char path[SBX_PATH_MAX + 1] = "unset";
		struct sbx_err err = SBX_ERR_INIT;
		int r = sbx_fs_normalize(cases[i].given, size, cases[i].root_at, path, &err);

		if (cases[i].expected) {
			cr_assert_eq(r, 0, "'%s': %s", cases[i].given, err.message);
			cr_assert_str_eq(path, cases[i].expected);
		} else {
			cr_assert_lt(r, 0, "'%s' was taken", cases[i].given);
			cr_assert_eq(err.kind, SBX_KIND_INVALID);
			cr_assert(strstr(err.message, cases[i].says), "%s", err.message);
			cr_assert_str_eq(path, "unset");
		}
	}
}

Test(path, has_the_limits_of_the_kernel)
{
	char given[SBX_PATH_MAX + 10], path[SBX_PATH_MAX + 1];
	struct sbx_err err = SBX_ERR_INIT;

	memset(given, 'a', 256);
	given[255] = '\0';
	cr_assert_eq(sbx_fs_normalize(given, 255, "/w", path, &err), 0);
	for (size_t i = 0; i < sizeof(given) - 1; i++)
		given[i] = i % 2 ? '/' : 'a';
	given[SBX_PATH_MAX] = '\0';
	cr_assert_eq(sbx_fs_normalize(given, SBX_PATH_MAX, "/w", path, &err), 0);
	given[SBX_PATH_MAX] = '/';
	given[SBX_PATH_MAX + 1] = 'a';
	given[SBX_PATH_MAX + 2] = '\0';
	cr_assert_lt(sbx_fs_normalize(given, SBX_PATH_MAX + 2, "/w", path, &err), 0);
}
