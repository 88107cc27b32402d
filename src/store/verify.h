/* SPDX-License-Identifier: MIT */
#ifndef SBX_STORE_VERIFY_H
#define SBX_STORE_VERIFY_H

#include "sbx/store.h"

struct verify {
	sbx_damage_fn report;
	void *data;
	int n_damages;
	struct sbx_head_log *log; /* NULL: it cannot be read, so all layers are checked */
};

/* Reports "<subject>: <text>". */
void verify_damage(struct verify *verify, const char *subject, const char *fmt, ...)
	SBX_PRINTF(3, 4);

/* Checks one layer, named id, alone: layer.json, tree and lines. */
void verify_layer(struct verify *verify, int layers_fd, const char *id);

#endif
