/* SPDX-License-Identifier: MIT */
/*
 * Errors as values. A function that can fail returns 0 or -errno and, where a person or an agent
 * will read about it, takes a struct sbx_err last and fills it at the place of the failure. The
 * message names the thing, the reason and, where there is one, the next step.
 */
#ifndef SBX_ERR_H
#define SBX_ERR_H

#include "sbx/util.h"

#define SBX_ERR_MESSAGE_MAX 1024

/* What callers of a tool see (CONTRACT: error kinds). Chosen where the failure happens. */
enum sbx_err_kind {
	SBX_KIND_FAILED = 0, /* operation_failed: the default */
	SBX_KIND_INVALID,    /* invalid_request */
	SBX_KIND_NOT_FOUND,  /* not_found */
	SBX_KIND_CONFLICT,   /* operation_conflict */
	SBX_KIND_BUSY,       /* server_busy */
	SBX_KIND_CONNECTION, /* connection_error */
	SBX_KIND_INTERNAL,   /* internal_error */
};

struct sbx_err {
	int code; /* positive errno, 0 while nothing failed */
	enum sbx_err_kind kind;
	char message[SBX_ERR_MESSAGE_MAX];
};

#define SBX_ERR_INIT ((struct sbx_err){0})

/*
 * Records a failure and returns -code. "%m" in fmt prints code's text. err may be NULL. The kind
 * stays SBX_KIND_FAILED. Messages too long are cut at a character and end in "...".
 */
int sbx_err_set(struct sbx_err *err, int code, const char *fmt, ...) SBX_PRINTF(3, 4);

/* The same with a kind: sbx_err_kind(err, SBX_KIND_NOT_FOUND, ENOENT, "no layer %s", id). */
int sbx_err_kind(struct sbx_err *err, enum sbx_err_kind kind, int code, const char *fmt, ...)
	SBX_PRINTF(4, 5);

/* Puts "<text>: " before the message on the way up. Returns r, so that it can be returned. */
int sbx_err_wrap(struct sbx_err *err, int r, const char *fmt, ...) SBX_PRINTF(3, 4);

/* The contract's word for a kind: "not_found". Never NULL. */
const char *sbx_err_kind_name(enum sbx_err_kind kind);
/* The inverse; an unknown word is SBX_KIND_INTERNAL. */
enum sbx_err_kind sbx_err_kind_parse(const char *name);

#endif
