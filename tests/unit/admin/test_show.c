/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>
#include <time.h>

#include "../../../src/admin/print.h"
#include "../../../src/admin/show.h"
#include "../../../src/admin/table.h"
#include "../../../src/admin/value.h"

static struct json_object *json(const char *text)
{
	struct json_object *o = NULL;
	struct sbx_err err = SBX_ERR_INIT;

	cr_assert_eq(sbx_json_parse(text, strlen(text), &o, &err), 0, "%s: %s", text, err.message);
	return o;
}

Test(show, text_of_a_sandbox_cannot_drive_the_terminal)
{
	static const struct {
		const char *text, *shown, *lines;
	} cases[] = {
		{"plain", "plain", "plain"},
		{"", "", ""},
		{"a\nb\tc", "a\\nb\\tc", "a\nb\tc"},
		{"\x1b[2J", "\\x1b[2J", "\\x1b[2J"},
		{"\r\a\x7f", "\\x0d\\x07\\x7f", "\\x0d\\x07\\x7f"},
		{"\xc2\x9b"
		 "31m",
			"\\u009b31m", "\\u009b31m"},
		{"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
		{"\xc2\xa0", "\xc2\xa0", "\xc2\xa0"},
		{"end\xc2", "end\xc2", "end\xc2"},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_BUF struct sbx_buf text = SBX_BUF_INIT, lines = SBX_BUF_INIT;

		cr_assert_eq(sbx_show_text(&text, cases[i].text, strlen(cases[i].text)), 0);
		cr_assert_eq(sbx_show_lines(&lines, cases[i].text, strlen(cases[i].text)), 0);
		cr_expect_str_eq(text.data, cases[i].shown);
		cr_expect_str_eq(lines.data, cases[i].lines);
	}
}

Test(show, a_zero_byte_is_shown)
{
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

	cr_assert_eq(sbx_show_lines(&out, "a\0b", 3), 0);
	cr_expect_str_eq(out.data, "a\\x00b");
}

Test(show, values_take_their_form_from_their_name)
{
	static const struct {
		const char *object, *shown;
	} cases[] = {
		{"{\"x\": 5}", "5"},
		{"{\"x\": null}", "-"},
		{"{\"x\": true}", "yes"},
		{"{\"x\": false}", "no"},
		{"{\"x\": []}", "-"},
		{"{\"x\": [\"a\", 2]}", "a, 2"},
		{"{\"x\": {\"b\": \"/\"}}", "{\"b\":\"/\"}"},
		{"{\"r\": [{\"start_line\": 3, \"line_count\": 2},"
		 " {\"start_line\": 9, \"line_count\": 1},"
		 " {\"start_line\": 4, \"line_count\": 0}]}",
			"3-4, 9, before 4"},
		{"{\"size\": 0}", "0 B"},
		{"{\"size\": 1023}", "1023 B"},
		{"{\"size\": 1536}", "1.5 KiB"},
		{"{\"n_bytes\": 1048576}", "1.0 MiB"},
		{"{\"n_bytes\": 1048575}", "1.0 MiB"},
		{"{\"n_bytes\": 104857600}", "100 MiB"},
		{"{\"memory_max\": 0}", "default"},
		{"{\"memory_max\": 2147483648}", "2.0 GiB"},
		{"{\"pids_max\": 0}", "default"},
		{"{\"cpu_max\": 150}", "1.50 cores"},
		{"{\"cpu_max\": 5}", "0.05 cores"},
		{"{\"mode\": 420}", "0644"},
		{"{\"mode\": 33188}", "0644"},
		{"{\"wall_time_seconds\": 1.23456}", "1.235 s"},
		{"{\"created_ns\": 0}", "-"},
		{"{\"created_ns\": 1700000000000000000}", "2023-11-14 22:13:20"},
	};

	(void)setenv("TZ", "UTC", 1);
	tzset();
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_JSON struct json_object *o = json(cases[i].object);
		SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

		json_object_object_foreach (o, key, value)
			cr_assert_eq(sbx_show_value(&out, key, value), 0);
		cr_expect_str_eq(out.data, cases[i].shown, "%s: %s", cases[i].object, out.data);
	}
}

Test(show, lists_are_aligned_tables)
{
	static const struct column columns[] = {
		{"name", "NAME"}, {"size", "SIZE"}, {"note", "NOTE"}, {NULL, NULL}};
	static const struct list lists[] = {{"things", columns, "no things"}, {NULL, NULL, NULL}};
	static const struct column fields[] = {{"version", "version"}, {NULL, NULL}};
	static const struct view view = {.fields = fields, .lists = lists};
	static const struct {
		const char *object, *shown;
	} cases[] = {
		{"{\"version\": 3, \"things\": ["
		 "{\"name\": \"a\", \"size\": 5, \"note\": \"x\"},"
		 "{\"name\": \"l\xc3\xa4nger\", \"size\": 2048, \"note\": \"\"},"
		 "{\"name\": \"b\", \"other\": 1}]}",
			"version  3\n\n"
			"NAME       SIZE  NOTE\n"
			"a           5 B  x\n"
			"l\xc3\xa4nger  2.0 KiB\n"
			"b             -  -\n"},
		{"{\"version\": 3, \"things\": []}", "version  3\n\nno things\n"},
		{"{\"things\": []}", "no things\n"},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_JSON struct json_object *o = json(cases[i].object);
		SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

		cr_assert_eq(sbx_show(o, &view, &out), 0);
		cr_expect_str_eq(out.data, cases[i].shown, "got:\n%s", out.data);
	}
}

Test(show, columns_that_no_element_has_are_left_out)
{
	static const struct column columns[] = {
		{"name", "NAME"}, {"problem", "PROBLEM"}, {NULL, NULL}};
	static const struct list lists[] = {{"things", columns, NULL}, {NULL, NULL, NULL}};
	static const struct view view = {.lists = lists};
	SBX_JSON struct json_object *o =
		json("{\"things\": [{\"name\": \"a\"}, {\"name\": \"b\", \"problem\": null}]}");
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

	cr_assert_eq(sbx_show(o, &view, &out), 0);
	cr_expect_str_eq(out.data, "NAME\na\nb\n", "got:\n%s", out.data);
}

Test(show, long_commands_are_cut_in_tables_only)
{
	static const char wide[] =
		"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4";
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT, table = SBX_BUF_INIT, fields = SBX_BUF_INIT;
	SBX_JSON struct json_object *list = NULL, *fact = NULL;

	for (int i = 0; i < 6; i++)
		cr_assert_eq(sbx_buf_append_string(&text, wide), 0);
	for (int longer = 0; longer < 2; longer++) {
		SBX_BUF struct sbx_buf object = SBX_BUF_INIT;

		cr_assert_eq(sbx_buf_printf(&object, "{\"list\": [{\"command\": \"%s%s\"}]}",
				     text.data, longer ? "x" : ""),
			0);
		sbx_json_put(&list);
		list = json(object.data);
		sbx_buf_clear(&table);
		cr_assert_eq(sbx_show(list, NULL, &table), 0);
		cr_expect(strstr(table.data, text.data));
		cr_expect_eq(strstr(table.data, "...") != NULL, longer);
		cr_expect_not(strchr(table.data, 'x'));
	}
	fact = json_object_get(json_object_array_get_idx(sbx_json_member(list, "list"), 0));
	cr_assert_eq(sbx_show(fact, NULL, &fields), 0);
	cr_expect(strchr(fields.data, 'x'));
}

Test(show, without_a_view_nothing_is_left_out)
{
	SBX_JSON struct json_object *o =
		json("{\"layer_id\": \"l1\", \"n_paths\": 2,"
		     " \"paths\": [{\"path\": \"a\\nb\", \"change\": \"add\"}], \"list\": []}");
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

	cr_assert_eq(sbx_show(o, NULL, &out), 0);
	cr_expect_str_eq(out.data,
		"layer id  l1\nn paths   2\nlist      -\n\n"
		"paths:\nPATH  CHANGE\na\\nb  add\n",
		"got:\n%s", out.data);
}

Test(show, table_grows_beyond_any_first_size)
{
	TABLE struct table table;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

	sbx_table_init(&table, 3);
	for (int i = 0; i < 3000; i++)
		cr_assert_eq(sbx_table_add_string(&table, "x"), 0);
	cr_assert_eq(sbx_table_print(&table, &out), 0);
	cr_expect_eq(out.size, 1000 * strlen("x  x  x\n"));
}

Test(show, blame_puts_owners_beside_their_lines)
{
	SBX_JSON struct json_object *ranges =
		json("[{\"start_line\": 1, \"line_count\": 2, \"owner\": \"original\"},"
		     " {\"start_line\": 3, \"line_count\": 1, \"owner\": \"operation:op_1\"}]");
	static const char content[] = "one\ntwo\x1b\nthree without end";
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

	cr_assert_eq(sbx_admin_print_owned_lines(ranges, content, strlen(content), &out), 0);
	cr_expect_str_eq(out.data,
		"original            1  one\n"
		"original            2  two\\x1b\n"
		"operation:op_1      3  three without end\n",
		"got:\n%s", out.data);
}
