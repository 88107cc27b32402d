/* SPDX-License-Identifier: MIT */
/* SHA-256 (nettle) for file contents, record checksums and tree digests. */
#ifndef SBX_DIGEST_H
#define SBX_DIGEST_H

#include <nettle/sha2.h>

#include "sbx/err.h"

#define SBX_DIGEST_SIZE     32
#define SBX_DIGEST_HEX_SIZE 65 /* with the NUL */

struct sbx_digest {
	uint8_t bytes[SBX_DIGEST_SIZE];
};

void sbx_digest_bytes(const void *data, size_t size, struct sbx_digest *ret);
/* Digest of an open regular file from offset 0; the file's offset does not move. */
int sbx_digest_fd(int fd, struct sbx_digest *ret, struct sbx_err *err);
void sbx_digest_hex(const struct sbx_digest *digest, char ret_hex[static SBX_DIGEST_HEX_SIZE]);
static inline bool sbx_digest_equal(const struct sbx_digest *a, const struct sbx_digest *b)
{
	return !__builtin_memcmp(a->bytes, b->bytes, SBX_DIGEST_SIZE);
}

#endif
