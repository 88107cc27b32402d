/* SPDX-License-Identifier: MIT */
/* Pieces of JSON text come out byte for byte. */
#include "../../../src/mcp/span.h"

#include <criterion/criterion.h>
#include <string.h>

static struct mcp_span span(const char *s)
{
	return (struct mcp_span){s, strlen(s)};
}

static const struct {
	const char *object;
	const char *id; /* "": there is no such piece */
} members[] = {
	{"{\"id\":1}", "1"},
	{" { \"id\" : 1 } ", "1"},
	{"{\"a\":{\"id\":2},\"id\":3}", "3"},
	{"{\"id\":3,\"a\":[{\"id\":2}]}", "3"},
	{"{\"id\":1,\"id\":2}", "2"},
	{"{\"id\":9007199254740993000000000001}", "9007199254740993000000000001"},
	{"{\"id\":-0}", "-0"},
	{"{\"id\":1.50e+3}", "1.50e+3"},
	{"{\"id\":\"\"}", "\"\""},
	{"{\"id\":\"a\\\"b\\\\\"}", "\"a\\\"b\\\\\""},
	{"{\"id\":\"\\u00e9\"}", "\"\\u00e9\""},
	{"{\"a\":\"}{\\\"id\\\":5\",\"id\":6}", "6"},
	{"{\"a\":\"\\\\\",\"id\":7}", "7"},
	{"{\"id\":[1,{\"b\":2}]}", "[1,{\"b\":2}]"},
	{"{\"id\":true,\"b\":null}", "true"},
	{"{}", ""},
	{"{\"idx\":1,\"i\":2}", ""},
	{"{\"\\u0069d\":1}", ""},
	{"{\"id\":2,\"\\u0069d\":1}", ""},
	{"[\"id\",1]", ""},
	{"\"id\"", ""},
};

Test(span, member_is_the_text_as_written)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(members); i++) {
		struct mcp_span got = mcp_span_member(span(members[i].object), "id");

		cr_expect(mcp_span_equal(got, span(members[i].id)), "%s: %.*s", members[i].object,
			(int)got.size, got.data ? got.data : "");
	}
}

Test(span, cut_text_is_never_read_past_its_end)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(members); i++) {
		for (size_t n = 0; n <= strlen(members[i].object); n++) {
			char *copy = malloc(n + 1); /* the sanitizers see a read past n + 1 */
			struct mcp_span cut = {copy, n};

			cr_assert_not_null(copy);
			memcpy(copy, members[i].object, n);
			cr_expect_leq(mcp_span_member(cut, "id").size, n);
			free(copy);
		}
	}
}

Test(span, elements_come_in_order)
{
	static const char *const expected[] = {"1", "\"a,]\"", "{\"b\":[2,3]}", "[]", "null"};
	struct mcp_span array = span(" [ 1 , \"a,]\",{\"b\":[2,3]},[],null ] "), got;
	size_t at = 0, n = 0;

	while (mcp_span_element(array, &at, &got)) {
		cr_assert_lt(n, SBX_N_ELEMENTS(expected));
		cr_expect(mcp_span_equal(got, span(expected[n])), "%zu: %.*s", n, (int)got.size,
			got.data);
		n++;
	}
	cr_expect_eq(n, SBX_N_ELEMENTS(expected));
}

Test(span, empty_array_has_no_elements)
{
	struct mcp_span got;
	size_t at = 0;

	cr_expect_not(mcp_span_element(span("[ ]"), &at, &got));
}
