/* SPDX-License-Identifier: MIT */
/*
 * Long requests. sandboxd's event loop neither parses nor copies what is long: a request frame of
 * more than SBX_ASIDE_FRAME_MIN bytes goes piece by piece into a memfd, and a worker takes it apart
 * (job "intake"): it parses and checks the request and puts its long texts aside, into the same
 * memfd; in their place stands {"aside": [offset, size]}. Where a text is needed it is read from
 * there: by the worker that runs the job, or by sandboxd for a command's text.
 */
#ifndef SBX_ASIDE_H
#define SBX_ASIDE_H

#include "sbx/buf.h"
#include "sbx/job.h"
#include "sbx/op.h"

#define SBX_ASIDE_FRAME_MIN (256u << 10) /* longer request frames are taken apart by a worker */
#define SBX_ASIDE_TEXT_MIN  (64u << 10)  /* longer texts in them are put aside */

/* A request's payload {"op", "args"}: parsed and checked. The caller puts *ret_args. */
int sbx_op_parse(const char *payload, size_t size, const struct sbx_op **ret_op,
	struct json_object **ret_args, struct sbx_err *err);
/* Writes the long texts of checked arguments to fd. Only those that may be long by their nature
 * (cmd, stdin, content, edits) are; another one is refused. */
int sbx_aside_put(struct json_object *args, int fd, struct sbx_err *err);
/* Puts all of them back. */
int sbx_aside_restore(struct json_object *args, int fd, struct sbx_err *err);
/* The text that stands for value: itself, or read from fd. */
int sbx_aside_text(
	struct json_object *value, int fd, struct sbx_buf *ret_text, struct sbx_err *err);

/* {} and the memfd that holds a request's payload → {"op", "args"}, what is long put aside there.
 */
int sbx_job_intake(struct sbx_job *job, struct sbx_err *err);

#endif
