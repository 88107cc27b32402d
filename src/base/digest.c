/* SPDX-License-Identifier: MIT */
#include "sbx/digest.h"

#include <stdio.h>
#include <unistd.h>

#define READ_CHUNK (32u * 1024) /* on the stack: to fetch pages for each small file costs more */

void sbx_digest_bytes(const void *data, size_t size, struct sbx_digest *ret)
{
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, size, data);
	sha256_digest(&ctx, SBX_DIGEST_SIZE, ret->bytes);
}

int sbx_digest_fd(int fd, struct sbx_digest *ret, struct sbx_err *err)
{
	uint8_t chunk[READ_CHUNK];
	struct sha256_ctx ctx;
	off_t at = 0;
	ssize_t n;

	sha256_init(&ctx);
	for (;;) {
		n = pread(fd, chunk, READ_CHUNK, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sbx_err_set(err, errno, "read for digest: %m");
		if (n == 0)
			break;
		sha256_update(&ctx, (size_t)n, chunk);
		at += n;
	}
	sha256_digest(&ctx, SBX_DIGEST_SIZE, ret->bytes);
	return 0;
}

void sbx_digest_hex(const struct sbx_digest *digest, char ret_hex[static SBX_DIGEST_HEX_SIZE])
{
	for (size_t i = 0; i < SBX_DIGEST_SIZE; i++)
		(void)snprintf(
			ret_hex + 2 * i, 3, "%02x", digest->bytes[i]); /* fits: sized by type */
}
