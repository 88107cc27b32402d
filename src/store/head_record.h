/* SPDX-License-Identifier: MIT */
/*
 * One line of head.log (docs/store-format.md):
 *
 *   <checksum> <version> <after> <time_ns> <kind> <body>\n
 *
 * The checksum covers what follows it up to the newline.
 *
 *   snapshot  {"format":1,"layers":[...]}             the whole stack: the first record, no other
 *   add       {"layer":"..."}                         one more on top
 *   squash    {"layer":"..." or null,"remove":[...]}  in the place of a contiguous run
 */
#ifndef SBX_STORE_HEAD_RECORD_H
#define SBX_STORE_HEAD_RECORD_H

#include "sbx/store.h"

enum head_record_kind {
	HEAD_SNAPSHOT,
	HEAD_ADD,
	HEAD_SQUASH,
};

struct head_record {
	uint64_t version;
	uint64_t after; /* the version that was durable when this one was formatted */
	uint64_t time_ns;
	enum head_record_kind kind;
	char layer[SBX_ID_SIZE]; /* "": none */
	struct sbx_stack list;   /* removed layers; of a snapshot: the stack */
};

void head_record_done(struct head_record *record);
#define HEAD_RECORD SBX_CLEANUP(head_record_done)

/* Appends the line. */
int head_record_put(const struct head_record *record, struct sbx_buf *out);
/*
 * A line without its newline. -EBADMSG: not as it was written; -EPROTO: as it was written, but not
 * by a program that we know the format of; -ENOMEM.
 */
int head_record_parse(const char *line, size_t size, struct head_record *ret);
/* A record of now, without versions. -EINVAL: a malformed id, or a change that changes nothing. */
int head_record_of_change(const struct sbx_head_change *change, struct head_record *ret);
/*
 * Applies an add or squash to a stack, which stays as it was on failure: -EINVAL when the removed
 * layers are no contiguous run of it, -EEXIST when the layer is there already, -E2BIG, -ENOMEM.
 */
int head_record_apply(const struct head_record *record, struct sbx_stack *stack);

#endif
