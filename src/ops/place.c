/* SPDX-License-Identifier: MIT */
#include "place.h"

#include <fcntl.h>

#include "content.h"
#include "meta.h"
#include "sbx/fs.h"

#define GITIGNORE_MAX (1u << 20) /* bytes of one .gitignore; a longer one is not obeyed */

int sbx_place_in_view(struct sbx_trail *trail, enum sbx_trail_column column, const char *name,
	struct sbx_place *ret)
{
	struct sbx_view_dir *dir;
	struct sbx_node node;
	int r, fd;

	r = sbx_trail_view(trail, column, &dir);
	if (r < 0 || !dir)
		return r;
	r = sbx_view_dir_lookup(dir, name, &node);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = sbx_view_dir_fd_of(dir, name, &fd);
	if (r < 0)
		return r;
	*ret = (struct sbx_place){.dir_fd = fd, .name = name, .st = node.st, .layer = node.layer};
	return 1;
}

int sbx_place_in_tree(struct sbx_trail *trail, const char *name, struct sbx_place *ret)
{
	struct sbx_place place = {.dir_fd = sbx_trail_tree(trail), .name = name};

	if (place.dir_fd < 0)
		return place.dir_fd;
	if (fstatat(place.dir_fd, name, &place.st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	*ret = place;
	return 0;
}

static int same_regular(const struct sbx_place *a, const struct sbx_place *b)
{
	SBX_CLOSE int a_fd = -EBADF;
	SBX_CLOSE int b_fd = -EBADF;

	if (a->st.st_size != b->st.st_size)
		return 0;
	a_fd = sbx_content_open(a->dir_fd, a->name);
	b_fd = a_fd < 0 ? a_fd : sbx_content_open(b->dir_fd, b->name);
	return b_fd < 0 ? b_fd : sbx_content_equal(a_fd, b_fd, (uint64_t)a->st.st_size);
}

int sbx_place_same_content(const struct sbx_place *a, const struct sbx_place *b)
{
	if (S_ISREG(a->st.st_mode))
		return same_regular(a, b);
	if (S_ISLNK(a->st.st_mode))
		return sbx_link_equal(a->dir_fd, a->name, b->dir_fd, b->name);
	return 1;
}

static int same_meta(const struct sbx_place *a, const struct sbx_place *b)
{
	SBX_META struct sbx_meta a_meta = SBX_META_INIT;
	SBX_META struct sbx_meta b_meta = SBX_META_INIT;
	int r = sbx_meta_read(a->dir_fd, a->name, &a->st, 0, &a_meta);

	if (r == 0)
		r = sbx_meta_read(b->dir_fd, b->name, &b->st, 0, &b_meta);
	return r < 0 ? r : sbx_meta_equal(&a_meta, &b_meta);
}

int sbx_place_compare(const struct sbx_place *a, const struct sbx_place *b)
{
	int differences = 0, r;

	if (a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino)
		return 0;
	if ((a->st.st_mode & S_IFMT) != (b->st.st_mode & S_IFMT))
		return SBX_DIFFERS_KIND;
	r = sbx_place_same_content(a, b);
	if (r < 0)
		return r;
	differences |= r ? 0 : SBX_DIFFERS_CONTENT;
	r = same_meta(a, b);
	if (r < 0)
		return r;
	differences |= r ? 0 : SBX_DIFFERS_META;
	return differences | (sbx_mtime_equal(&a->st, &b->st) ? 0 : SBX_DIFFERS_MTIME);
}

int sbx_place_read(const struct sbx_place *place, size_t max, struct sbx_buf *ret)
{
	SBX_CLOSE int fd = sbx_content_open(place->dir_fd, place->name);

	return fd < 0 ? fd : sbx_fs_read_fd(fd, max, ret);
}

int sbx_ignore_load(struct sbx_ignore *ignore, struct sbx_trail *trail, bool *ret_found)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf path = SBX_BUF_INIT;
	struct sbx_place file;
	int r;

	r = sbx_place_in_view(trail, SBX_TRAIL_BASE, ".gitignore", &file);
	if (r <= 0 || !S_ISREG(file.st.st_mode))
		return r < 0 ? r : 0;
	r = sbx_place_read(&file, GITIGNORE_MAX, &text);
	if (r == -EFBIG)
		return 0;
	if (r == 0)
		r = sbx_trail_path(trail, NULL, &path);
	if (r < 0)
		return r;
	r = sbx_ignore_add(ignore, path.data, text.data, text.size, NULL);
	*ret_found = true;
	return r == -E2BIG ? 0 : r; /* what is over the limit is not ignored, the safe side */
}
