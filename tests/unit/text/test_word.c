/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "sbx/word.h"

Test(word, distance_counts_single_typing_errors)
{
	static const struct {
		const char *a, *b;
		size_t distance;
	} cases[] = {
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"inspect", "inspect", 0},
		{"Inspect", "inSPECT", 0},
		{"inspct", "inspect", 1},
		{"inspeect", "inspect", 1},
		{"inspekt", "inspect", 1},
		{"inpsect", "inspect", 1},
		{"kitten", "sitting", 3},
		{"abcd", "badc", 2},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		cr_expect_eq(sbx_word_distance(cases[i].a, cases[i].b), cases[i].distance, "%s, %s",
			cases[i].a, cases[i].b);
		cr_expect_eq(sbx_word_distance(cases[i].b, cases[i].a), cases[i].distance, "%s, %s",
			cases[i].b, cases[i].a);
	}
}

Test(word, distance_of_a_word_over_the_limit_is_infinite)
{
	char longest[SBX_WORD_MAX + 2];

	memset(longest, 'x', sizeof(longest));
	longest[SBX_WORD_MAX] = '\0';
	cr_expect_eq(sbx_word_distance(longest, "x"), SBX_WORD_MAX - 1u);
	cr_expect_eq(sbx_word_distance("x", longest), SBX_WORD_MAX - 1u);
	longest[SBX_WORD_MAX] = 'x';
	longest[SBX_WORD_MAX + 1] = '\0';
	cr_expect_eq(sbx_word_distance(longest, "x"), SIZE_MAX);
	cr_expect_eq(sbx_word_distance("x", longest), SIZE_MAX);
}

Test(word, short_words_may_have_one_error)
{
	cr_expect_eq(sbx_word_distance_max("ls"), 1u);
	cr_expect_eq(sbx_word_distance_max("destroy"), 2u);
}
