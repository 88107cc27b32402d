/* SPDX-License-Identifier: MIT */
/* A growable byte buffer. Always NUL-terminated after the first append, so data can be a string. */
#ifndef SBX_BUF_H
#define SBX_BUF_H

#include <stdarg.h>

#include "sbx/util.h"

struct sbx_buf {
	char *data; /* NULL while empty and never grown */
	size_t size;
	size_t capacity;
};

#define SBX_BUF_INIT ((struct sbx_buf){0})

void sbx_buf_done(struct sbx_buf *buf);
#define SBX_BUF SBX_CLEANUP(sbx_buf_done)

/* Makes room for extra more bytes (and the NUL). -ENOMEM on failure or overflow. */
int sbx_buf_reserve(struct sbx_buf *buf, size_t extra);
int sbx_buf_append(struct sbx_buf *buf, const void *data, size_t size);
int sbx_buf_append_string(struct sbx_buf *buf, const char *s);
int sbx_buf_printf(struct sbx_buf *buf, const char *fmt, ...) SBX_PRINTF(2, 3);
/* Drops n bytes from the front. */
void sbx_buf_consume(struct sbx_buf *buf, size_t n);
static inline void sbx_buf_clear(struct sbx_buf *buf)
{
	buf->size = 0;
	if (buf->data)
		buf->data[0] = '\0';
}
/* Gives the bytes away (free() them); the buffer is empty afterwards. Never NULL on success:
 * an empty buffer yields "". NULL means no memory. */
char *sbx_buf_take(struct sbx_buf *buf);

#endif
