/* SPDX-License-Identifier: MIT */
#include "sbx/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const kind_names[] = {
	[SBX_KIND_FAILED] = "operation_failed",
	[SBX_KIND_INVALID] = "invalid_request",
	[SBX_KIND_NOT_FOUND] = "not_found",
	[SBX_KIND_CONFLICT] = "operation_conflict",
	[SBX_KIND_BUSY] = "server_busy",
	[SBX_KIND_CONNECTION] = "connection_error",
	[SBX_KIND_INTERNAL] = "internal_error",
};

const char *sbx_err_kind_name(enum sbx_err_kind kind)
{
	if ((size_t)kind >= SBX_N_ELEMENTS(kind_names))
		return kind_names[SBX_KIND_INTERNAL];
	return kind_names[kind];
}

enum sbx_err_kind sbx_err_kind_parse(const char *name)
{
	for (size_t i = 0; name && i < SBX_N_ELEMENTS(kind_names); i++)
		if (!strcmp(name, kind_names[i]))
			return (enum sbx_err_kind)i;
	return SBX_KIND_INTERNAL;
}

/* Ends a cut message in "..." without leaving half a UTF-8 character before it. */
static void mark_cut(char *message, size_t size)
{
	size_t end = size - 4;

	while (end > 0 && ((unsigned char)message[end] & 0xc0) == 0x80)
		end--;
	memcpy(message + end, "...", 4);
}

static void format_message(struct sbx_err *err, int code, const char *fmt, va_list ap)
{
	int n;

	errno = code; /* so that %m prints it */
	n = vsnprintf(err->message, sizeof(err->message), fmt, ap);
	if (n >= (int)sizeof(err->message))
		mark_cut(err->message, sizeof(err->message));
}

int sbx_err_set(struct sbx_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (err) {
		err->code = code;
		err->kind = SBX_KIND_FAILED;
		va_start(ap, fmt);
		format_message(err, code, fmt, ap);
		va_end(ap);
	}
	return -code;
}

int sbx_err_kind(struct sbx_err *err, enum sbx_err_kind kind, int code, const char *fmt, ...)
{
	va_list ap;

	if (err) {
		err->code = code;
		err->kind = kind;
		va_start(ap, fmt);
		format_message(err, code, fmt, ap);
		va_end(ap);
	}
	return -code;
}

int sbx_err_wrap(struct sbx_err *err, int r, const char *fmt, ...)
{
	char inner[SBX_ERR_MESSAGE_MAX];
	size_t used;
	va_list ap;
	int n;

	if (!err)
		return r;
	memcpy(inner, err->message, sizeof(inner));
	va_start(ap, fmt);
	format_message(err, err->code ? err->code : -r, fmt, ap);
	va_end(ap);
	used = strlen(err->message);
	n = snprintf(err->message + used, sizeof(err->message) - used, ": %s", inner);
	if (n >= (int)(sizeof(err->message) - used))
		mark_cut(err->message, sizeof(err->message));
	if (!err->code)
		err->code = -r;
	return r;
}
