/* SPDX-License-Identifier: MIT */
#include "sbx/buf.h"

#include <stdio.h>
#include <string.h>

void sbx_buf_done(struct sbx_buf *buf)
{
	sbx_free_pointer(&buf->data);
	*buf = SBX_BUF_INIT;
}

int sbx_buf_reserve(struct sbx_buf *buf, size_t extra)
{
	size_t need, capacity;
	char *data;

	if (__builtin_add_overflow(buf->size, extra, &need) ||
		__builtin_add_overflow(need, 1, &need))
		return -ENOMEM;
	if (need <= buf->capacity)
		return 0;
	capacity = SBX_MAX(need, SBX_MAX(buf->capacity + buf->capacity / 2, (size_t)64));
	data = realloc(buf->data, capacity);
	if (!data)
		return -ENOMEM;
	buf->data = data;
	buf->capacity = capacity;
	return 0;
}

int sbx_buf_append(struct sbx_buf *buf, const void *data, size_t size)
{
	int r = sbx_buf_reserve(buf, size);

	if (r < 0)
		return r;
	if (size)
		memcpy(buf->data + buf->size, data, size);
	buf->size += size;
	buf->data[buf->size] = '\0';
	return 0;
}

int sbx_buf_append_string(struct sbx_buf *buf, const char *s)
{
	return sbx_buf_append(buf, s, strlen(s));
}

int sbx_buf_printf(struct sbx_buf *buf, const char *fmt, ...)
{
	va_list ap;
	int n, r;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	r = sbx_buf_reserve(buf, (size_t)n);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	(void)vsnprintf(buf->data + buf->size, (size_t)n + 1, fmt, ap); /* measured above */
	va_end(ap);
	buf->size += (size_t)n;
	return 0;
}

void sbx_buf_consume(struct sbx_buf *buf, size_t n)
{
	if (n >= buf->size) {
		sbx_buf_clear(buf);
		return;
	}
	memmove(buf->data, buf->data + n, buf->size - n);
	buf->size -= n;
	buf->data[buf->size] = '\0';
}

char *sbx_buf_take(struct sbx_buf *buf)
{
	char *data;

	if (sbx_buf_reserve(buf, 0) < 0)
		return NULL;
	buf->data[buf->size] = '\0';
	data = buf->data;
	*buf = SBX_BUF_INIT;
	return data;
}
