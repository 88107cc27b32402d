/* SPDX-License-Identifier: MIT */
#include "show.h"

#include <ctype.h>
#include <string.h>

#include "table.h"
#include "value.h"

#define COMMAND_MAX 60 /* characters of a command in a table: it only reminds of it */

/* "workspace_session_id" → "workspace session id", for members that a view has no title for. */
static int add_title(struct table *table, const char *key, bool upper)
{
	SBX_BUF struct sbx_buf cell = SBX_BUF_INIT;
	int r = sbx_show_text(&cell, key, strlen(key));

	for (size_t i = 0; i < cell.size; i++) {
		if (cell.data[i] == '_')
			cell.data[i] = ' ';
		else if (upper)
			cell.data[i] = (char)toupper((unsigned char)cell.data[i]);
	}
	return r < 0 ? r : sbx_table_add(table, &cell);
}

static int add_value(struct table *table, const char *key, struct json_object *value)
{
	SBX_BUF struct sbx_buf cell = SBX_BUF_INIT;
	int r = sbx_show_value(&cell, key, value);

	return r < 0 ? r : sbx_table_add(table, &cell);
}

/* Cuts the text after max characters and says so. */
static int cut(struct sbx_buf *cell, size_t max)
{
	size_t n = 0, at = 0;

	for (; at < cell->size; at++) {
		n += ((unsigned char)cell->data[at] & 0xc0) != 0x80;
		if (n > max)
			break;
	}
	if (at == cell->size)
		return 0;
	cell->size = at;
	return sbx_buf_append_string(cell, "...");
}

static int add_table_value(struct table *table, const char *key, struct json_object *value)
{
	SBX_BUF struct sbx_buf cell = SBX_BUF_INIT;
	int r = sbx_show_value(&cell, key, value);

	if (r == 0 && !strcmp(key, "command"))
		r = cut(&cell, COMMAND_MAX);
	return r < 0 ? r : sbx_table_add(table, &cell);
}

static bool is_list(struct json_object *value)
{
	return json_object_is_type(value, json_type_array) && json_object_array_length(value) &&
	       json_object_is_type(json_object_array_get_idx(value, 0), json_type_object);
}

const struct column sbx_show_conflict_columns[] = {{"kind", "KIND"}, {"path", "PATH"},
	{"ours_ranges", "OUR LINES"}, {"theirs_ranges", "THEIR LINES"}, {"ours_owner", "OURS"},
	{"theirs_owner", "THEIRS"}, {NULL, NULL}};

static int show_fields(struct json_object *result, const struct column *fields, struct sbx_buf *out)
{
	TABLE struct table table;
	int r = 0;

	sbx_table_init(&table, 2);
	if (!fields) {
		json_object_object_foreach (result, key, value) {
			if (r == 0 && !is_list(value))
				r = add_title(&table, key, false);
			if (r == 0 && !is_list(value))
				r = add_value(&table, key, value);
		}
		return r < 0 ? r : sbx_table_print(&table, out);
	}
	for (; r == 0 && fields->key; fields++) {
		struct json_object *value;

		if (!json_object_object_get_ex(result, fields->key, &value))
			continue;
		r = sbx_table_add_string(&table, fields->title);
		if (r == 0)
			r = add_value(&table, fields->key, value);
	}
	return r < 0 ? r : sbx_table_print(&table, out);
}

/* The columns of a list that no view describes: the members of its first element. */
static size_t columns_of(struct json_object *first, struct column ret[static TABLE_COLUMNS_MAX])
{
	size_t n = 0;

	json_object_object_foreach (first, key, value) {
		(void)value;
		if (n < TABLE_COLUMNS_MAX)
			ret[n++] = (struct column){.key = key, .title = NULL};
	}
	return n;
}

static bool any_has(struct json_object *array, const char *key)
{
	for (size_t i = 0; i < json_object_array_length(array); i++)
		if (sbx_json_member(json_object_array_get_idx(array, i), key))
			return true;
	return false;
}

/* Those of the view that at least one element has something for. */
static size_t columns_given(struct json_object *array, const struct column *columns,
	struct column ret[static TABLE_COLUMNS_MAX])
{
	size_t n = 0;

	for (; columns->key && n < TABLE_COLUMNS_MAX; columns++)
		if (any_has(array, columns->key))
			ret[n++] = *columns;
	return n;
}

static int add_row(struct table *table, struct json_object *element, const struct column *columns)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < table->n_columns; i++) {
		struct json_object *value = sbx_json_member(element, columns[i].key);
		enum json_type type = json_object_get_type(value);

		if (type == json_type_int || type == json_type_double)
			table->right[i] = !sbx_value_is_text(columns[i].key);
		r = add_table_value(table, columns[i].key, value);
	}
	return r;
}

static int show_list(struct json_object *array, const struct column *given, struct sbx_buf *out)
{
	struct json_object *first = json_object_array_get_idx(array, 0);
	struct column columns[TABLE_COLUMNS_MAX];
	TABLE struct table table;
	size_t n = given ? columns_given(array, given, columns) : columns_of(first, columns);
	int r = 0;

	sbx_table_init(&table, SBX_MAX(n, (size_t)1));
	for (size_t i = 0; r == 0 && i < n; i++)
		r = columns[i].title ? sbx_table_add_string(&table, columns[i].title)
				     : add_title(&table, columns[i].key, true);
	for (size_t i = 0; r == 0 && i < json_object_array_length(array); i++)
		r = add_row(&table, json_object_array_get_idx(array, i), columns);
	return r < 0 ? r : sbx_table_print(&table, out);
}

static int show_given_lists(
	struct json_object *result, const struct list *lists, struct sbx_buf *out)
{
	int r = 0;

	for (; r == 0 && lists->key; lists++) {
		struct json_object *array = sbx_json_member(result, lists->key);

		if (!json_object_is_type(array, json_type_array))
			continue;
		if (out->size && (json_object_array_length(array) || lists->empty))
			r = sbx_buf_append(out, "\n", 1);
		if (r < 0)
			break;
		if (json_object_array_length(array))
			r = show_list(array, lists->columns, out);
		else if (lists->empty)
			r = sbx_buf_printf(out, "%s\n", lists->empty);
	}
	return r;
}

static int show_all_lists(struct json_object *result, struct sbx_buf *out)
{
	int r = 0;

	json_object_object_foreach (result, key, value) {
		if (r == 0 && is_list(value))
			r = sbx_buf_printf(out, "%s%s:\n", out->size ? "\n" : "", key);
		if (r == 0 && is_list(value))
			r = show_list(value,
				strcmp(key, "conflicts") ? NULL : sbx_show_conflict_columns, out);
	}
	return r;
}

int sbx_show(struct json_object *result, const struct view *view, struct sbx_buf *out)
{
	int r = 0;

	if (!view || view->fields || !view->lists)
		r = show_fields(result, view ? view->fields : NULL, out);
	if (r < 0)
		return r;
	return view && view->lists ? show_given_lists(result, view->lists, out)
				   : show_all_lists(result, out);
}
