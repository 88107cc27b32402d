/* SPDX-License-Identifier: MIT */
#include "verify.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "head_log.h"

#define OPEN_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

void verify_damage(struct verify *verify, const char *subject, const char *fmt, ...)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	SBX_FREE char *detail = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&detail, fmt, ap) < 0)
		detail = NULL;
	va_end(ap);
	/* without memory the subject alone must do */
	if (detail && sbx_buf_printf(&text, "%s: %s", subject, detail) == 0)
		verify->report(verify->data, text.data);
	else
		verify->report(verify->data, subject);
	if (verify->n_damages < INT_MAX)
		verify->n_damages++;
}

/* Calls check for each name in store_fd/part, in no order. */
static void for_each(struct verify *verify, int store_fd, const char *part,
	void (*check)(struct verify *verify, int dir_fd, const char *name))
{
	int fd = openat(store_fd, part, OPEN_DIR_FLAGS);
	DIR *dirp = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dirp) {
		verify_damage(verify, part, "cannot be listed: %s", strerror(errno));
		sbx_fd_close(&fd);
		return;
	}
	while (errno = 0, (entry = readdir(dirp)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			check(verify, fd, entry->d_name);
	if (errno)
		verify_damage(verify, part, "cannot be listed: %s", strerror(errno));
	(void)closedir(dirp); /* only read from */
}

static void check_reject(struct verify *verify, int rejects_fd, const char *name)
{
	char path[NAME_MAX + sizeof("/" SBX_REJECT_JSON)];
	struct stat st;

	if (name[0] == '.') /* on its way out */
		return;
	if (!sbx_id_valid(name)) {
		verify_damage(verify, "rejects", "\"%s\" is no reject", name);
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/" SBX_REJECT_JSON, name); /* fits */
	if (fstatat(rejects_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		verify_damage(verify, name, SBX_REJECT_JSON ": %s", strerror(errno));
}

/* A layer that no version names is being made, or left for the next sweep. */
static void check_layer(struct verify *verify, int layers_fd, const char *name)
{
	if (!verify->log || head_log_names(verify->log, name))
		verify_layer(verify, layers_fd, name);
}

/* Every layer of the head must be there; those of older versions may be gone. */
static void check_head(struct verify *verify, int store_fd)
{
	struct sbx_err err = SBX_ERR_INIT;
	const struct sbx_stack *stack;

	if (sbx_head_log_open(store_fd, false, &verify->log, &err) < 0) {
		verify_damage(verify, "store", "%s", err.message);
		return;
	}
	stack = &sbx_head_log_head(verify->log)->stack;
	for (size_t i = 0; i < stack->n; i++) {
		char path[SBX_ID_SIZE + sizeof("layers/")];
		struct stat st;

		(void)snprintf(path, sizeof(path), "layers/%s", stack->ids[i]); /* fits */
		if (fstatat(store_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
			verify_damage(verify, stack->ids[i],
				"head.log names this layer as number %zu of the head, but: %s",
				i + 1, strerror(errno));
	}
}

static void check_sandbox(struct verify *verify, int sandbox_fd)
{
	struct sbx_sandbox sandbox = {0};
	struct sbx_err err = SBX_ERR_INIT;

	if (sbx_sandbox_load(sandbox_fd, &sandbox, &err) < 0)
		verify_damage(verify, "sandbox", "%s", err.message);
	sbx_sandbox_done(&sandbox);
}

int sbx_store_verify(int sandbox_fd, sbx_damage_fn report, void *data)
{
	struct verify verify = {.report = report, .data = data};
	SBX_CLOSE int store_fd = openat(sandbox_fd, "store", OPEN_DIR_FLAGS);

	if (store_fd < 0) {
		int r = -errno;

		verify_damage(&verify, "store", "cannot be opened: %s", strerror(-r));
		return r;
	}
	check_sandbox(&verify, sandbox_fd);
	check_head(&verify, store_fd);
	for_each(&verify, store_fd, "layers", check_layer);
	for_each(&verify, store_fd, "rejects", check_reject);
	sbx_head_log_free(verify.log);
	return verify.n_damages;
}
