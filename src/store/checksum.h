/* SPDX-License-Identifier: MIT */
/* The short checksum of the store's own files: the first 8 bytes of SHA-256. */
#ifndef SBX_STORE_CHECKSUM_H
#define SBX_STORE_CHECKSUM_H

#include "sbx/util.h"

#define CHECKSUM_SIZE     8
#define CHECKSUM_HEX_SIZE 17 /* with the NUL */

void checksum(const void *data, size_t size, uint8_t ret[static CHECKSUM_SIZE]);
/* Over two pieces, as if they were one. */
void checksum_pair(const void *a, size_t a_size, const void *b, size_t b_size,
	uint8_t ret[static CHECKSUM_SIZE]);
void checksum_hex(const void *data, size_t size, char ret_hex[static CHECKSUM_HEX_SIZE]);

#endif
