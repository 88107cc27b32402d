/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "sbx/json.h"

#define TEXT(s) s, sizeof(s) - 1

static const struct {
	const char *text;
	size_t size;
	const char *printed; /* NULL: refused */
} cases[] = {
	{TEXT("{}"), "{}"},
	{TEXT(" [1, 2.5, \"x\", null, true] \r\n"), "[1,2.5,\"x\",null,true]"},
	{TEXT("17"), "17"},
	{TEXT("-0"), "0"},
	{TEXT("9007199254740993"), "9007199254740993"},
	{TEXT("1.25e10"), "1.25e10"},
	{TEXT("\"\\u0000\""), "\"\\u0000\""},
	{TEXT("\"a/b\""), "\"a/b\""},
	{TEXT("{\"a\":1,\"a\":2}"), "{\"a\":2}"},
	{TEXT(""), NULL},
	{TEXT("   "), NULL},
	{TEXT("{bad"), NULL},
	{TEXT("{\"a\":1"), NULL},
	{TEXT("{} {}"), NULL},
	{TEXT("1 2"), NULL},
	{TEXT("{'a':1}"), NULL},
	{TEXT("[1,]"), NULL},
	{TEXT("/* c */ 1"), NULL},
	{TEXT("\"a\nb\""), NULL},
	{TEXT("\"a\0b\""), NULL},
	{TEXT("\xef\xbb\xbf{}"), NULL},
	{TEXT("\"\xff\""), NULL},
	{TEXT("\"\xed\xa0\x80\""), NULL},
	{TEXT("NaN"), NULL},
	{TEXT("[-Infinity]"), NULL},
	{TEXT("True"), NULL},
	{TEXT("1."), NULL},
	{TEXT("-01"), NULL},
	{TEXT("[1.e5]"), NULL},
	{TEXT("-"), NULL},
	{TEXT(".5"), NULL},
	{TEXT("-0.5E+3"), "-0.5E+3"},
	{TEXT("{}\0"), NULL},
};

Test(json, takes_exactly_one_strict_text)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_JSON struct json_object *o = NULL;
		struct sbx_err err = SBX_ERR_INIT;
		int r = sbx_json_parse(cases[i].text, cases[i].size, &o, &err);
		size_t size;

		if (cases[i].printed) {
			cr_assert_eq(r, 0, "%s: %s", cases[i].text, err.message);
			cr_assert_str_eq(sbx_json_text(o, &size), cases[i].printed);
		} else {
			cr_assert_lt(r, 0, "case %zu was taken", i);
			cr_assert_eq(err.kind, SBX_KIND_INVALID);
			cr_assert(*err.message);
		}
	}
}

Test(json, depth_is_limited)
{
	char text[20001];
	SBX_JSON struct json_object *o = NULL;
	struct sbx_err err = SBX_ERR_INIT;

	memset(text, '[', 10000);
	memset(text + 10000, ']', 10000);
	cr_assert_lt(sbx_json_parse(text, 20000, &o, &err), 0);
	text[10000 - SBX_JSON_DEPTH_MAX + 1] = '[';
	cr_assert_eq(sbx_json_parse(text + 10000 - SBX_JSON_DEPTH_MAX + 1,
			     2 * (SBX_JSON_DEPTH_MAX - 1), &o, &err),
		0, "%s", err.message);
}

Test(json, lookups_fall_back_on_absent_null_and_wrong_types)
{
	SBX_JSON struct json_object *o = NULL;
	struct sbx_err err = SBX_ERR_INIT;
	const char *text = "{\"s\":\"x\",\"i\":5,\"b\":true,\"n\":null}";

	cr_assert_eq(sbx_json_parse(text, strlen(text), &o, &err), 0);
	cr_assert_str_eq(sbx_json_string(o, "s", "-"), "x");
	cr_assert_str_eq(sbx_json_string(o, "i", "-"), "-");
	cr_assert_str_eq(sbx_json_string(o, "n", "-"), "-");
	cr_assert_eq(sbx_json_int(o, "i", 7), 5);
	cr_assert_eq(sbx_json_int(o, "s", 7), 7);
	cr_assert_eq(sbx_json_int(o, "absent", 7), 7);
	cr_assert(sbx_json_bool(o, "b", false));
	cr_assert_null(sbx_json_member(NULL, "x"));
}

Test(json, bytes_that_are_no_text_still_make_valid_json)
{
	SBX_JSON struct json_object *o = json_object_new_object();
	const char *text;
	size_t size;

	sbx_json_add_bytes(o, "b",
		"a\xff"
		"\0"
		"\xe2\x82",
		5);
	sbx_json_add_path(o, "p", "caf\xe9/\xc3\xa9");
	text = sbx_json_text(o, &size);
	cr_assert(sbx_utf8_valid(text, size));
	cr_assert_str_eq(text, "{\"b\":\"a\xef\xbf\xbd\\u0000\xef\xbf\xbd\xef\xbf\xbd\","
			       "\"p\":\"caf\\\\xE9/\xc3\xa9\"}");
}

static const struct {
	const char *bytes;
	bool valid;
} utf8[] = {
	{"plain ascii, longer than eight bytes", true},
	{"\xc3\xa9", true},
	{"\xe2\x82\xac", true},
	{"\xf0\x9f\x98\x80", true},
	{"\xf4\x8f\xbf\xbf", true},
	{"\xf4\x90\x80\x80", false}, /* beyond U+10FFFF */
	{"\xc0\xaf", false},         /* overlong */
	{"\xe0\x80\xaf", false},
	{"\xf0\x80\x80\xaf", false},
	{"\xed\xa0\x80", false}, /* surrogate */
	{"\xe2\x82", false},
	{"\x80", false},
	{"12345678\xff", false},
};

Test(utf8, follows_rfc_3629)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(utf8); i++)
		cr_assert_eq(sbx_utf8_valid(utf8[i].bytes, strlen(utf8[i].bytes)), utf8[i].valid,
			"case %zu", i);
}
