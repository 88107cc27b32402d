/* SPDX-License-Identifier: MIT */
/* Down a changeset's tree once more, with the directories at hand. */
#ifndef SBX_OPS_CHANGESET_WALK_H
#define SBX_OPS_CHANGESET_WALK_H

#include "changeset.h"
#include "trail.h"

struct sbx_changeset_walk {
	/* Each entry that was not dropped, but for the root; the trail is in its directory. */
	int (*visit)(void *data, struct sbx_trail *trail, uint32_t index);
	/* After all below a directory (the root too); the trail is inside. May be NULL. */
	int (*leave)(void *data, struct sbx_trail *trail, uint32_t index);
	void *data;
};

/* The trail is at the root and comes back to it. Ends at the first negative answer: that one. */
int sbx_changeset_walk(const struct sbx_changeset *set, struct sbx_trail *trail,
	const struct sbx_changeset_walk *walk);

#endif
