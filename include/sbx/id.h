/* SPDX-License-Identifier: MIT */
/*
 * Identities. A generated id is "<prefix>_" and 20 characters of lower-case base32 (100 random
 * bits from getrandom(2)): it cannot be guessed and is never used twice. A sandbox id may also be
 * chosen by a person. Ids become file names, so their alphabet is closed: [a-z0-9_-.], never
 * starting with a dot or dash.
 */
#ifndef SBX_ID_H
#define SBX_ID_H

#include "sbx/err.h"

#define SBX_ID_MAX  64 /* characters, without the NUL */
#define SBX_ID_SIZE (SBX_ID_MAX + 1)

#define SBX_ID_SANDBOX   "sbox"
#define SBX_ID_SESSION   "ws"
#define SBX_ID_COMMAND   "cmd"
#define SBX_ID_LAYER     "layer"
#define SBX_ID_REJECT    "rej"
#define SBX_ID_OPERATION "op"

/* Writes a fresh id. Fails only when the kernel gives no random bytes (-EIO). */
int sbx_id_new(const char *prefix, char ret_id[static SBX_ID_SIZE]);
/* Whether s may be an id at all (alphabet and length); says nothing about its existence. */
bool sbx_id_valid(const char *s);
/* Whether s is an id and was generated with this prefix. */
bool sbx_id_has_prefix(const char *s, const char *prefix);

#endif
