/* SPDX-License-Identifier: MIT */
/*
 * head.mark: the version that was acknowledged last, noted apart from head.log, where an end that
 * was cut off cannot be told from one that was never written. Never synced: it survives a kill of
 * any process, and after a loss of power names that version or an earlier one.
 *
 * Two slots, written in turn, so that a reader beside the writer finds one of them whole. Each is
 * one line of HEAD_MARK_SLOT bytes: "<checksum> <version>", blanks, a newline.
 */
#ifndef SBX_STORE_HEAD_MARK_H
#define SBX_STORE_HEAD_MARK_H

#include "sbx/err.h"

#define HEAD_MARK      "head.mark"
#define HEAD_MARK_SLOT 64 /* bytes */

/* 0 for a store without it. -EBADMSG: it is there and says nothing. */
int head_mark_read(int store_fd, uint64_t *ret_version, struct sbx_err *err);
/* For writing; made when missing. */
int head_mark_open(int store_fd, int *ret_fd, struct sbx_err *err);
int head_mark_write(int fd, uint64_t version);

#endif
