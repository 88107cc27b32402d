/* SPDX-License-Identifier: MIT */
/* Why an old_string was not found: a sentence for whoever wrote it. */
#ifndef SBX_TEXT_EDIT_HINT_H
#define SBX_TEXT_EDIT_HINT_H

#include "sbx/buf.h"

/*
 * Appends to out what comes closest to needle in text, in time and memory proportional to both.
 * 0 or -ENOMEM.
 */
int edit_hint(const char *text, size_t size, const char *needle, size_t n, struct sbx_buf *out);

#endif
