/* SPDX-License-Identifier: MIT */
#include "sbx/id.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* Crockford base32 without i, l, o, u: no two characters look alike. */
static const char alphabet[32] = "0123456789abcdefghjkmnpqrstvwxyz";

#define ID_RANDOM_CHARS 20

int sbx_id_new(const char *prefix, char ret_id[static SBX_ID_SIZE])
{
	unsigned char random[ID_RANDOM_CHARS];
	size_t at = strlen(prefix);

	if (at + 1 + ID_RANDOM_CHARS > SBX_ID_MAX)
		return -EINVAL;
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	memcpy(ret_id, prefix, at);
	ret_id[at++] = '_';
	for (size_t i = 0; i < ID_RANDOM_CHARS; i++)
		ret_id[at++] = alphabet[random[i] & 31];
	ret_id[at] = '\0';
	return 0;
}

bool sbx_id_valid(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || n > SBX_ID_MAX || s[0] == '.' || s[0] == '-')
		return false;
	return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_-.") == n;
}

bool sbx_id_has_prefix(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);

	return sbx_id_valid(s) && !strncmp(s, prefix, n) && s[n] == '_' &&
	       strlen(s) == n + 1 + ID_RANDOM_CHARS;
}
