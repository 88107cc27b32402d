/* SPDX-License-Identifier: MIT */
/*
 * Random stacks of layers, made by real overlayfs sessions or by strewing marks by hand, in a child
 * with a mount namespace of its own. The child's current directory is a scratch directory, so that
 * mount options stay short: layers/l0/tree is the lowest layer.
 */
#ifndef SBX_TEST_STORE_STACKS_H
#define SBX_TEST_STORE_STACKS_H

#include "sbx/view.h"

#define STACK_LAYERS 6

/* Names that occur in the trees, up to three deep. */
#define STACK_FIRST_NAME 'a'
#define STACK_LAST_NAME  'd'

/* Makes layer i above those before it. 0 or -errno. */
int stack_session_layer(int i, uint64_t *state);
int stack_marks_layer(int i, uint64_t *state);

/* The same with edits of the caller's own on the mounted tree root_fd. */
int stack_session(int i, void (*edit)(int root_fd, uint64_t *state), uint64_t *state);

struct stack_plan {
	int (*layer)(int i, uint64_t *state);
	/* Called after each layer, in the child: 0, or -errno after printing what is wrong. */
	int (*check)(int n_layers, uint64_t *state);
};
/* Runs the plan for the seeds 1 to n_seeds; skips the test without root. */
void stack_run(const struct stack_plan *plan, unsigned int n_seeds);

/* For checks */
unsigned int stack_pick(uint64_t *state, unsigned int n);
void stack_ids(int n_layers, struct sbx_stack *ret);
int stack_open_dir(const char *path);
/* Mounts a stack read-only at "merged" or "other" ("more": options that begin with a comma). */
int stack_mount(const struct sbx_stack *stack, const char *at, const char *more);

#endif
