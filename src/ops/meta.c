/* SPDX-License-Identifier: MIT */
#include "meta.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#define OPAQUE   "trusted.overlay.opaque"
#define REDIRECT "trusted.overlay.redirect"

/* Room for "/proc/self/fd/<n>/<name>". */
#define PLACE_SIZE (sizeof("/proc/self/fd//") + 10 + NAME_MAX)

/*
 * There is no *xattrat(2) before 6.13, and opening the file is out of the question for FIFOs and
 * links. The kernel resolves the descriptor's link in /proc to the very directory that we hold.
 */
static const char *place(int dir_fd, const char *name, char buf[static PLACE_SIZE])
{
	(void)snprintf(buf, PLACE_SIZE, "/proc/self/fd/%d/%s", dir_fd, name); /* names fit */
	return buf;
}

static void xattr_done(struct sbx_xattr *xattr)
{
	sbx_free_pointer(&xattr->name);
	sbx_free_pointer(&xattr->value);
}

void sbx_meta_done(struct sbx_meta *meta)
{
	for (size_t i = 0; i < meta->n_xattrs; i++)
		xattr_done(&meta->xattrs[i]);
	sbx_free_pointer(&meta->xattrs);
	*meta = SBX_META_INIT;
}

static bool is_overlay_mark(const char *name)
{
	return !strncmp(name, "trusted.overlay.", strlen("trusted.overlay.")) ||
	       !strncmp(name, "user.overlay.", strlen("user.overlay."));
}

bool sbx_xattr_is_private(const char *name)
{
	return is_overlay_mark(name) || !strcmp(name, SBX_XATTR_ORIGIN) ||
	       !strcmp(name, "security.selinux");
}

ssize_t sbx_xattr_get(int dir_fd, const char *name, const char *xattr, void *value, size_t size)
{
	char buf[PLACE_SIZE];
	ssize_t n = lgetxattr(place(dir_fd, name, buf), xattr, value, size);

	return n < 0 ? -errno : n;
}

int sbx_xattr_remove(int dir_fd, const char *name, const char *xattr)
{
	char buf[PLACE_SIZE];

	if (lremovexattr(place(dir_fd, name, buf), xattr) == 0)
		return 0;
	return errno == ENODATA ? 0 : -errno;
}

/* Adds a copy; value may be NULL to leave size bytes of room. */
static struct sbx_xattr *meta_add(
	struct sbx_meta *meta, const char *name, const void *value, size_t size)
{
	struct sbx_xattr added = {.name = strdup(name), .value = malloc(size + 1), .size = size};
	struct sbx_xattr *xattrs;

	xattrs = reallocarray(meta->xattrs, meta->n_xattrs + 1, sizeof(*xattrs));
	if (xattrs)
		meta->xattrs = xattrs;
	if (!xattrs || !added.name || !added.value) {
		xattr_done(&added);
		return NULL;
	}
	if (value && size)
		memcpy(added.value, value, size);
	xattrs[meta->n_xattrs++] = added;
	return &xattrs[meta->n_xattrs - 1];
}

static int read_value(const char *path, const char *name, struct sbx_meta *meta)
{
	struct sbx_xattr *xattr;
	ssize_t size, n;

	size = lgetxattr(path, name, NULL, 0);
	if (size < 0)
		return -errno;
	xattr = meta_add(meta, name, NULL, (size_t)size);
	if (!xattr)
		return -ENOMEM;
	n = lgetxattr(path, name, xattr->value, (size_t)size);
	if (n < 0)
		return -errno;
	xattr->size = (size_t)n;
	return 0;
}

static bool keeps_mark(const char *name)
{
	return !strcmp(name, OPAQUE) || !strcmp(name, REDIRECT);
}

/* Takes in, removes or passes over one attribute. */
static int take_xattr(
	const char *path, const char *name, enum sbx_meta_flags flags, struct sbx_meta *meta)
{
	if (!sbx_xattr_is_private(name))
		return read_value(path, name, meta);
	if (!(flags & SBX_META_STRIP) || !is_overlay_mark(name))
		return 0;
	if (S_ISDIR(meta->st.st_mode) && keeps_mark(name))
		return 0;
	return lremovexattr(path, name) < 0 && errno != ENODATA ? -errno : 0;
}

static int compare_xattrs(const void *a, const void *b)
{
	const struct sbx_xattr *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* size bytes of names, each with its NUL. */
static int take_xattrs(const char *path, const char *names, size_t size, enum sbx_meta_flags flags,
	struct sbx_meta *meta)
{
	for (size_t at = 0; at < size; at += strlen(names + at) + 1) {
		int r = take_xattr(path, names + at, flags, meta);

		if (r < 0)
			return r;
	}
	if (meta->n_xattrs)
		qsort(meta->xattrs, meta->n_xattrs, sizeof(*meta->xattrs), compare_xattrs);
	return 0;
}

static int read_xattrs(const char *path, enum sbx_meta_flags flags, struct sbx_meta *meta)
{
	char few[512];
	SBX_FREE char *many = NULL;
	ssize_t n = llistxattr(path, few, sizeof(few));

	if (n < 0 && errno == ERANGE) {
		many = malloc(XATTR_LIST_MAX);
		if (!many)
			return -ENOMEM;
		n = llistxattr(path, many, XATTR_LIST_MAX);
	}
	if (n < 0)
		return errno == ENOTSUP ? 0 : -errno;
	return take_xattrs(path, many ? many : few, (size_t)n, flags, meta);
}

int sbx_meta_read(int dir_fd, const char *name, const struct stat *st, enum sbx_meta_flags flags,
	struct sbx_meta *ret)
{
	SBX_META struct sbx_meta meta = SBX_META_INIT;
	char buf[PLACE_SIZE];
	int r;

	if (st)
		meta.st = *st;
	else if (fstatat(dir_fd, name, &meta.st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	r = read_xattrs(place(dir_fd, name, buf), flags, &meta);
	if (r < 0)
		return r;
	*ret = meta;
	meta = SBX_META_INIT;
	return 0;
}

int sbx_meta_strip_fd(int fd, bool *ret_is_bare)
{
	SBX_FREE char *many = NULL;
	char few[512], *names = few;
	ssize_t n = flistxattr(fd, few, sizeof(few));

	if (n < 0 && errno == ERANGE) {
		names = many = malloc(XATTR_LIST_MAX);
		if (!many)
			return -ENOMEM;
		n = flistxattr(fd, many, XATTR_LIST_MAX);
	}
	if (n < 0 && errno != ENOTSUP)
		return -errno;
	*ret_is_bare = true;
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
		if (!is_overlay_mark(names + at))
			*ret_is_bare = false;
		else if (fremovexattr(fd, names + at) < 0)
			return -errno;
	}
	return 0;
}

static bool xattr_equal(const struct sbx_xattr *a, const struct sbx_xattr *b)
{
	if (!a || !b)
		return a == b;
	return a->size == b->size && !memcmp(a->value, b->value, a->size);
}

bool sbx_meta_equal(const struct sbx_meta *a, const struct sbx_meta *b)
{
	if (a->st.st_mode != b->st.st_mode || a->st.st_uid != b->st.st_uid ||
		a->st.st_gid != b->st.st_gid || a->n_xattrs != b->n_xattrs)
		return false;
	for (size_t i = 0; i < a->n_xattrs; i++)
		if (strcmp(a->xattrs[i].name, b->xattrs[i].name) != 0 ||
			!xattr_equal(&a->xattrs[i], &b->xattrs[i]))
			return false;
	return true;
}

int sbx_mtime_set(int dir_fd, const char *name, const struct timespec *mtime)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, *mtime};

	return utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

bool sbx_mtime_equal(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool is_newer(const struct stat *a, const struct stat *b)
{
	if (a->st_mtim.tv_sec != b->st_mtim.tv_sec)
		return a->st_mtim.tv_sec > b->st_mtim.tv_sec;
	return a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

enum side {
	SIDE_HEAD,
	SIDE_OURS,
	SIDE_CONFLICT,
};

/* Which side's value counts, from which of the three are equal. */
static enum side pick(bool head_is_base, bool ours_is_base, bool equal)
{
	if (equal || ours_is_base)
		return SIDE_HEAD;
	return head_is_base ? SIDE_OURS : SIDE_CONFLICT;
}

static enum side pick_id(const uint32_t *base, uint32_t head, uint32_t ours)
{
	return pick(base && head == *base, base && ours == *base, head == ours);
}

static int merge_ids(const struct sbx_meta *base, const struct stat *head, const struct stat *ours,
	struct stat *merged)
{
	const struct {
		const uint32_t *base;
		uint32_t head;
		uint32_t ours;
		uint32_t *merged;
	} fields[] = {
		{base ? &base->st.st_mode : NULL, head->st_mode, ours->st_mode, &merged->st_mode},
		{base ? &base->st.st_uid : NULL, head->st_uid, ours->st_uid, &merged->st_uid},
		{base ? &base->st.st_gid : NULL, head->st_gid, ours->st_gid, &merged->st_gid},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(fields); i++) {
		enum side side = pick_id(fields[i].base, fields[i].head, fields[i].ours);

		if (side == SIDE_CONFLICT)
			return 1;
		*fields[i].merged = side == SIDE_HEAD ? fields[i].head : fields[i].ours;
	}
	return 0;
}

static void merge_mtime(const struct sbx_meta *base, const struct stat *head,
	const struct stat *ours, struct stat *merged)
{
	if (base && sbx_mtime_equal(&base->st, ours))
		merged->st_mtim = head->st_mtim;
	else if (base && sbx_mtime_equal(&base->st, head))
		merged->st_mtim = ours->st_mtim;
	else
		merged->st_mtim = is_newer(ours, head) ? ours->st_mtim : head->st_mtim;
}

static const struct sbx_xattr *find_xattr(const struct sbx_meta *meta, const char *name)
{
	for (size_t i = 0; meta && i < meta->n_xattrs; i++)
		if (!strcmp(meta->xattrs[i].name, name))
			return &meta->xattrs[i];
	return NULL;
}

static int merge_xattr(const char *name, const struct sbx_meta *base, const struct sbx_meta *head,
	const struct sbx_meta *ours, struct sbx_meta *merged)
{
	const struct sbx_xattr *b = find_xattr(base, name), *h = find_xattr(head, name);
	const struct sbx_xattr *o = find_xattr(ours, name), *chosen;
	enum side side = pick(xattr_equal(h, b), xattr_equal(o, b), xattr_equal(h, o));

	if (side == SIDE_CONFLICT)
		return 1;
	chosen = side == SIDE_HEAD ? h : o;
	if (chosen && !meta_add(merged, chosen->name, chosen->value, chosen->size))
		return -ENOMEM;
	return 0;
}

static int merge_xattrs(const struct sbx_meta *base, const struct sbx_meta *head,
	const struct sbx_meta *ours, struct sbx_meta *merged)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < head->n_xattrs; i++)
		r = merge_xattr(head->xattrs[i].name, base, head, ours, merged);
	for (size_t i = 0; r == 0 && i < ours->n_xattrs; i++)
		if (!find_xattr(head, ours->xattrs[i].name))
			r = merge_xattr(ours->xattrs[i].name, base, head, ours, merged);
	if (merged->n_xattrs)
		qsort(merged->xattrs, merged->n_xattrs, sizeof(*merged->xattrs), compare_xattrs);
	return r;
}

int sbx_meta_merge(const struct sbx_meta *base, const struct sbx_meta *head,
	const struct sbx_meta *ours, struct sbx_meta *ret)
{
	SBX_META struct sbx_meta merged = SBX_META_INIT;
	int r;

	merged.st = ours->st;
	r = merge_ids(base, &head->st, &ours->st, &merged.st);
	if (r == 0)
		r = merge_xattrs(base, head, ours, &merged);
	if (r != 0)
		return r;
	merge_mtime(base, &head->st, &ours->st, &merged.st);
	*ret = merged;
	merged = SBX_META_INIT;
	return 0;
}

static int apply_xattrs(int dir_fd, const char *name, const struct sbx_meta *meta)
{
	SBX_META struct sbx_meta present = SBX_META_INIT;
	char buf[PLACE_SIZE];
	int r;

	r = sbx_meta_read(dir_fd, name, NULL, 0, &present);
	if (r < 0)
		return r;
	(void)place(dir_fd, name, buf);
	for (size_t i = 0; i < present.n_xattrs; i++)
		if (!find_xattr(meta, present.xattrs[i].name) &&
			lremovexattr(buf, present.xattrs[i].name) < 0)
			return -errno;
	for (size_t i = 0; i < meta->n_xattrs; i++) {
		const struct sbx_xattr *want = &meta->xattrs[i];

		if (!xattr_equal(find_xattr(&present, want->name), want) &&
			lsetxattr(buf, want->name, want->value, want->size, 0) < 0)
			return -errno;
	}
	return 0;
}

int sbx_meta_apply(int dir_fd, const char *name, const struct sbx_meta *meta)
{
	int r;

	/* the order matters: a change of owner clears set-id bits and file capabilities */
	if (fchownat(dir_fd, name, meta->st.st_uid, meta->st.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISLNK(meta->st.st_mode) && fchmodat(dir_fd, name, meta->st.st_mode & 07777, 0) < 0)
		return -errno;
	r = apply_xattrs(dir_fd, name, meta);
	return r < 0 ? r : sbx_mtime_set(dir_fd, name, &meta->st.st_mtim);
}
