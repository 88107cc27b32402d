/* SPDX-License-Identifier: MIT */
/*
 * Versions older than the head can be asked for as far back as their layers stay within the
 * sandbox's history_max; what only older ones need is removed.
 */
#ifndef SBX_DAEMON_HISTORY_H
#define SBX_DAEMON_HISTORY_H

#include "daemon.h"

/* Looks how far back, in a worker, and forgets the rest. Call after a squash. */
void history_trim(struct daemon *daemon);
/* No version names these layers any more: they go when nothing that lives needs them. */
void history_forgotten(struct daemon *daemon, const struct sbx_stack *layers);
/* Something that worked on layers has ended: removes those that only it still needed. */
void history_unpinned(struct daemon *daemon);
/* Adds the layers that anything alive works on to the set ret, whatever version they are of. */
int history_pinned_layers(const struct daemon *daemon, struct sbx_stack *ret);

#endif
