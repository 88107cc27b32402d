/* SPDX-License-Identifier: MIT */
/* What crosses the border between sandboxd and the spawner: fixed-size messages, little else. */
#ifndef SBX_SESSION_SPAWNER_PROTO_H
#define SBX_SESSION_SPAWNER_PROTO_H

#include "sbx/spawner.h"

enum sbx_spawn_op {
	SBX_SPAWN_LAYER = 1,
	SBX_SPAWN_UNLAYER,
	SBX_SPAWN_PREPARE,
	SBX_SPAWN_RUN, /* with one descriptor: control */
	SBX_SPAWN_RENEW,
	SBX_SPAWN_DROP,
	SBX_SPAWN_SEAT, /* with the descriptors of a struct sbx_cgroup_entry, v2's first */
};

struct sbx_spawn_request {
	uint64_t tag;
	uint32_t op;
	uint32_t number;    /* of the layer or slot */
	uint32_t n_unified; /* SEAT: 1 if the first descriptor is a v2 directory, else 0 */
	uint32_t n_layers;
	uint32_t layers[SBX_SPAWN_LAYERS_MAX]; /* bottom first */
	char name[SBX_ID_SIZE];                /* layer id or session directory */
};

/* Tag 0 is the spawner's first word: set up, or why not. Callers' tags are passed through. */
struct sbx_spawn_answer {
	uint64_t tag;
	int32_t code;
	char message[256];
};

#endif
