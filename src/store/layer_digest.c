/* SPDX-License-Identifier: MIT */
/*
 * The digest of a tree is SHA-256 over one block for each entry, directories after what is in them,
 * names in byte order (docs/store-format.md). Each block begins with its length and each piece of
 * changing length in it with its own, so that no two trees give the same bytes.
 */
#include <fcntl.h>
#include <nettle/sha2.h>
#include <string.h>

#include "sbx/digest.h"
#include "sbx/fs.h"
#include "sbx/store.h"
#include "sbx/tally.h"
#include "walk.h"
#include "xattr.h"

#define OPEN_FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

struct sbx_tally {
	struct sha256_ctx ctx;
	struct sbx_buf block, names, value; /* kept for the next entry */
	uint64_t n_entries, n_bytes;
};

int sbx_tally_new(struct sbx_tally **ret)
{
	struct sbx_tally *tally = calloc(1, sizeof(*tally));

	if (!tally)
		return -ENOMEM;
	sha256_init(&tally->ctx);
	*ret = tally;
	return 0;
}

void sbx_tally_free(struct sbx_tally *tally)
{
	if (!tally)
		return;
	sbx_buf_done(&tally->block);
	sbx_buf_done(&tally->names);
	sbx_buf_done(&tally->value);
	sbx_free_pointer(&tally);
}

static int put_u64(struct sbx_buf *out, uint64_t value)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	return sbx_buf_append(out, bytes, sizeof(bytes));
}

static int put_bytes(struct sbx_buf *out, const void *data, size_t size)
{
	int r = put_u64(out, size);

	return r < 0 ? r : sbx_buf_append(out, data, size);
}

/*
 * Path, mode with type, owner, size, modification time, device number. A directory's time does not
 * count: a layer that is ready but not yet in the head takes over newer ones from layers that came
 * before it, and must not be read as a whole again for that.
 */
static int put_head(struct sbx_buf *out, const char *path, const struct stat *st)
{
	const struct timespec none = {0};
	const struct timespec *mtime = S_ISDIR(st->st_mode) ? &none : &st->st_mtim;
	const uint64_t fields[] = {
		st->st_mode,
		st->st_uid,
		st->st_gid,
		S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
		(uint64_t)mtime->tv_sec,
		(uint64_t)mtime->tv_nsec,
		S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode) ? st->st_rdev : 0,
	};
	int r = put_bytes(out, path, strlen(path));

	for (size_t i = 0; i < SBX_N_ELEMENTS(fields) && r == 0; i++)
		r = put_u64(out, fields[i]);
	return r;
}

static int put_xattrs(struct sbx_tally *tally, int fd)
{
	int r = xattr_list(fd, xattr_is_content, &tally->names, NULL);

	for (size_t at = 0; r == 0 && at < tally->names.size;) {
		const char *name = tally->names.data + at;

		r = xattr_get(fd, name, &tally->value);
		if (r == 0)
			r = put_bytes(&tally->block, name, strlen(name));
		if (r == 0)
			r = put_bytes(&tally->block, tally->value.data, tally->value.size);
		at += strlen(name) + 1;
	}
	return r;
}

static int put_target(struct sbx_buf *out, const struct sbx_tally_item *item)
{
	char target[4097];
	ssize_t n = readlinkat(item->dir_fd, item->name, target, sizeof(target));

	return n < 0 ? -errno : put_bytes(out, target, (size_t)n);
}

static int put_open_file(struct sbx_tally *tally, const struct sbx_tally_item *item, int fd)
{
	struct sbx_digest digest;
	int r = item->has_no_xattrs ? 0 : put_xattrs(tally, fd);

	if (r == 0 && !item->content)
		r = sbx_digest_fd(fd, &digest, NULL);
	if (r < 0)
		return r;
	return sbx_buf_append(
		&tally->block, (item->content ? item->content : &digest)->bytes, SBX_DIGEST_SIZE);
}

static int put_content(struct sbx_tally *tally, const struct sbx_tally_item *item)
{
	SBX_CLOSE int opened = -EBADF;

	tally->n_bytes += (uint64_t)item->st.st_size;
	if (item->fd >= 0 || (item->content && item->has_no_xattrs))
		return put_open_file(tally, item, item->fd);
	opened = openat(item->dir_fd, item->name, OPEN_FILE_FLAGS);
	return opened < 0 ? -errno : put_open_file(tally, item, opened);
}

/* A directory's block comes when it is left, so that it is open then. */
static int put_directory(struct sbx_tally *tally, const struct sbx_tally_item *item)
{
	int opaque = sbx_is_opaque(item->dir_fd), r;

	if (opaque < 0)
		return opaque;
	r = put_u64(&tally->block, (uint64_t)opaque);
	return r < 0 ? r : put_xattrs(tally, item->dir_fd);
}

int sbx_tally_add(struct sbx_tally *tally, const struct sbx_tally_item *item)
{
	uint8_t size[8];
	int r;

	sbx_buf_clear(&tally->block);
	r = put_head(&tally->block, item->path, &item->st);
	if (r == 0 && S_ISREG(item->st.st_mode))
		r = put_content(tally, item);
	else if (r == 0 && S_ISLNK(item->st.st_mode))
		r = put_target(&tally->block, item);
	else if (r == 0 && S_ISDIR(item->st.st_mode))
		r = put_directory(tally, item);
	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(size); i++)
		size[i] = (uint8_t)(tally->block.size >> (8 * i));
	sha256_update(&tally->ctx, sizeof(size), size);
	sha256_update(&tally->ctx, tally->block.size, (const uint8_t *)tally->block.data);
	tally->n_entries++;
	return 0;
}

void sbx_tally_end(struct sbx_tally *tally, struct sbx_tally_result *ret)
{
	struct sbx_digest digest;

	sha256_digest(&tally->ctx, sizeof(digest.bytes), digest.bytes);
	sbx_digest_hex(&digest, ret->hex);
	ret->n_entries = tally->n_entries - 1; /* without the root */
	ret->n_bytes = tally->n_bytes;
}

static int add_event(struct sbx_tally *tally, struct walk *walk, int event,
	const struct walk_item *item, struct sbx_err *err)
{
	int r;

	if (event == WALK_VANISHED)
		return sbx_err_set(err, ENOENT, "digest of %s: it vanished", item->path);
	if (event == WALK_ENTRY && S_ISDIR(item->st.st_mode))
		return walk_enter(walk, err);
	r = sbx_tally_add(tally, &(struct sbx_tally_item){.path = item->path,
					 .dir_fd = item->dir_fd,
					 .name = item->name,
					 .st = item->st,
					 .fd = -EBADF});
	return r < 0 ? sbx_err_set(err, -r, "digest of %s: %m", item->path) : 0;
}

int sbx_layer_digest(int tree_fd, char ret_hex[static 65], uint64_t *ret_entries,
	uint64_t *ret_bytes, struct sbx_err *err)
{
	SBX_TALLY struct sbx_tally *tally = NULL;
	struct sbx_tally_result result;
	WALK struct walk *walk = NULL;
	struct walk_item item;
	int r = sbx_tally_new(&tally);

	if (r < 0)
		return sbx_err_set(err, -r, "digest of a tree: %m");
	r = walk_new(tree_fd, -EBADF, &walk, err);
	if (r < 0)
		return r;
	while ((r = walk_next(walk, &item, err)) > 0) {
		r = add_event(tally, walk, r, &item, err);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	sbx_tally_end(tally, &result);
	memcpy(ret_hex, result.hex, sizeof(result.hex));
	*ret_entries = result.n_entries;
	*ret_bytes = result.n_bytes;
	return 0;
}
