/* SPDX-License-Identifier: MIT */
#include "checksum.h"

#include <nettle/sha2.h>
#include <stdio.h>

void checksum_pair(const void *a, size_t a_size, const void *b, size_t b_size,
	uint8_t ret[static CHECKSUM_SIZE])
{
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, a_size, a);
	sha256_update(&ctx, b_size, b);
	sha256_digest(&ctx, CHECKSUM_SIZE, ret);
}

void checksum(const void *data, size_t size, uint8_t ret[static CHECKSUM_SIZE])
{
	checksum_pair(data, size, "", 0, ret);
}

void checksum_hex(const void *data, size_t size, char ret_hex[static CHECKSUM_HEX_SIZE])
{
	uint8_t sum[CHECKSUM_SIZE];

	checksum(data, size, sum);
	for (size_t i = 0; i < CHECKSUM_SIZE; i++)
		(void)snprintf(ret_hex + 2 * i, 3, "%02x", sum[i]); /* fits: sized by type */
}
