/* SPDX-License-Identifier: MIT */
/* A project with every shape of file that a sandbox keeps. */
#ifndef SBX_TEST_STORE_SOURCE_H
#define SBX_TEST_STORE_SOURCE_H

#define SOURCE_SPARSE      "sparse"
#define SOURCE_SPARSE_SIZE (8 << 20) /* bytes; a few kilobytes are data */
#define SOURCE_LINKED      "links/a" /* one of three names */

/* Levels of 60 bytes: longer than PATH_MAX and deeper than a walk keeps open; or shorter. */
#define SOURCE_DEEP    90
#define SOURCE_SHALLOW 40

/* Fills an empty directory; aborts the test when something fails. Needs root. */
void source_fill(int dir_fd, int n_levels);

#endif
