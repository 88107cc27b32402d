/* SPDX-License-Identifier: MIT */
/*
 * Results for people: fields under each other, lists as tables. The form of a value follows from
 * its name (a time is "..._ns", a size "..._bytes"), so that one thing looks the same everywhere.
 * Nothing that a sandbox made reaches the terminal unescaped.
 */
#ifndef SBX_ADMIN_SHOW_H
#define SBX_ADMIN_SHOW_H

#include "sbx/json.h"

struct column {
	const char *key; /* NULL ends the list */
	const char *title;
};

/* A list inside a result. */
struct list {
	const char *key;              /* of the array; NULL ends the lists */
	const struct column *columns; /* NULL: every member that an element has */
	const char *empty;            /* what to say of an empty list */
};

struct view {
	const struct column *fields; /* members shown first; NULL: none or, without lists, all */
	const struct list *lists;    /* NULL: none */
};

/* Of a list of conflicts, wherever it comes. */
extern const struct column sbx_show_conflict_columns[];

/* A view of NULL shows all members. */
int sbx_show(struct json_object *result, const struct view *view, struct sbx_buf *out);

/* Appends text with control characters (also U+0080 to U+009F) written as \n, \x1b, \u009b. */
int sbx_show_text(struct sbx_buf *out, const char *text, size_t size);
/* The same for a text of several lines: '\n' and '\t' stay. */
int sbx_show_lines(struct sbx_buf *out, const char *text, size_t size);
/* One value in the form that its name asks for. */
int sbx_show_value(struct sbx_buf *out, const char *key, struct json_object *value);

#endif
