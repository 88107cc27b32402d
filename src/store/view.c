/* SPDX-License-Identifier: MIT */
/*
 * A directory of the view is a list of the layers' own directories, topmost first, that overlayfs
 * would merge. Looking a name up goes down that list until something ends the search: a file, a
 * whiteout, an opaque directory, or a non-directory below a directory.
 */
#include "sbx/view.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "place.h"
#include "sbx/fs.h"
#include "sbx/store.h"
#include "view_internal.h"

#define OPEN_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct view_part {
	int fd;
	size_t layer;
	struct place place; /* once its descriptor is given up, which place.fd does not hold */
};

struct sbx_view_dir {
	struct sbx_view *view;
	bool borrowed; /* the root's descriptors are the view's */
	bool covers;   /* view_dir_covers() */
	size_t n;
	struct view_part parts[]; /* topmost first */
};

int sbx_is_opaque(int dir_fd)
{
	char value[2];
	ssize_t n = fgetxattr(dir_fd, "trusted.overlay.opaque", value, sizeof(value));

	if (n >= 0)
		return n == 1 && value[0] == 'y';
	/* ERANGE: a longer value, which overlayfs does not take for opaque either */
	return errno == ENODATA || errno == ENOTSUP || errno == ERANGE ? 0 : -errno;
}

static int open_layer(int layers_fd, const char *id, struct view_layer *ret, struct sbx_err *err)
{
	char path[SBX_ID_SIZE + sizeof("/" SBX_LAYER_TREE)];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/" SBX_LAYER_TREE, id); /* fits: ids are bounded */
	fd = openat(layers_fd, path, OPEN_DIR_FLAGS);
	if (fd < 0)
		return sbx_err_set(err, errno, "open layer %s: %m", id);
	*ret = (struct view_layer){.tree_fd = fd, .has_lines = true};
	memcpy(ret->id, id, strlen(id) + 1);
	return 0;
}

/* Moves a layer that another view has at the same place, if nobody uses that one any more. */
static bool take_layer(struct sbx_view *from, size_t i, const char *id, struct view_layer *ret)
{
	if (!from || from->n_refs > 1 || i >= from->n || strcmp(from->layers[i].id, id) != 0)
		return false;
	*ret = from->layers[i];
	from->layers[i] = (struct view_layer){.tree_fd = -EBADF};
	return true;
}

static int view_new(int layers_fd, const struct sbx_stack *stack, struct sbx_view *from,
	struct sbx_view **ret, struct sbx_err *err)
{
	SBX_VIEW struct sbx_view *view = NULL;

	view = calloc(1, sizeof(*view) + stack->n * sizeof(view->layers[0]));
	if (!view)
		return sbx_err_set(err, ENOMEM, "open a view of %zu layers: %m", stack->n);
	view->n_refs = 1;
	for (; view->n < stack->n; view->n++) {
		struct view_layer *layer = &view->layers[view->n];
		int r = 0;

		if (!take_layer(from, view->n, stack->ids[view->n], layer))
			r = open_layer(layers_fd, stack->ids[view->n], layer, err);
		if (r < 0)
			return r;
	}
	*ret = sbx_take(&view);
	return 0;
}

int sbx_view_open(
	int layers_fd, const struct sbx_stack *stack, struct sbx_view **ret, struct sbx_err *err)
{
	return view_new(layers_fd, stack, NULL, ret, err);
}

static bool shows(const struct sbx_view *view, const struct sbx_stack *stack)
{
	bool same = view && view->n == stack->n;

	for (size_t i = 0; same && i < stack->n; i++)
		same = strcmp(view->layers[i].id, stack->ids[i]) == 0;
	return same;
}

int sbx_view_open_kept(int layers_fd, const struct sbx_stack *stack, struct sbx_view **kept,
	struct sbx_view **ret, struct sbx_err *err)
{
	struct sbx_view *old = shows(*kept, stack) ? NULL : sbx_take(kept);
	int r = *kept ? 0 : view_new(layers_fd, stack, old, kept, err);

	sbx_view_free(old);
	if (r < 0)
		return r;
	(*kept)->n_refs++;
	*ret = *kept;
	return 0;
}

void sbx_view_free(struct sbx_view *view)
{
	if (!view || --view->n_refs > 0)
		return;
	for (size_t i = 0; i < view->n; i++) {
		sbx_owners_free(view->layers[i].owners);
		sbx_fd_close(&view->layers[i].tree_fd);
	}
	sbx_free_pointer(&view);
}

static struct sbx_view_dir *dir_new(struct sbx_view *view, size_t n_max)
{
	struct sbx_view_dir *dir = calloc(1, sizeof(*dir) + n_max * sizeof(dir->parts[0]));

	if (dir)
		dir->view = view;
	return dir;
}

void sbx_view_dir_free(struct sbx_view_dir *dir)
{
	if (!dir)
		return;
	for (size_t i = 0; i < dir->n && !dir->borrowed; i++)
		sbx_fd_close(&dir->parts[i].fd);
	sbx_free_pointer(&dir);
}

static int root_open(struct sbx_view *view, struct sbx_view_dir **ret)
{
	struct sbx_view_dir *dir = dir_new(view, view->n);

	if (!dir)
		return -ENOMEM;
	dir->borrowed = true;
	/* overlayfs merges the roots whatever marks they carry */
	for (size_t i = view->n; i-- > 0;)
		dir->parts[dir->n++] =
			(struct view_part){.fd = view->layers[i].tree_fd, .layer = i};
	*ret = dir;
	return 0;
}

int sbx_view_dir_node(struct sbx_view_dir *dir, struct sbx_node *ret)
{
	struct sbx_node node = {.st = {.st_mode = S_IFDIR | 0755, .st_nlink = 2}};

	if (dir->n) {
		if (fstat(dir->parts[0].fd, &node.st) < 0)
			return -errno;
		node.layer = dir->parts[0].layer;
	}
	*ret = node;
	return 0;
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* A name that is not one component would leave the view. */
static bool is_component(const char *name)
{
	return *name && !is_dots(name) && !strchr(name, '/');
}

/* The part of dir that shows name: its index, or -ENOENT. */
static ssize_t find_part(const struct sbx_view_dir *dir, const char *name, struct stat *ret_st)
{
	struct stat st;

	if (!is_component(name))
		return -EINVAL;
	for (size_t i = 0; i < dir->n; i++) {
		if (fstatat(dir->parts[i].fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno == ENOENT)
				continue;
			return -errno;
		}
		if (sbx_is_whiteout(&st))
			return -ENOENT;
		*ret_st = st;
		return (ssize_t)i;
	}
	return -ENOENT;
}

int sbx_view_dir_lookup(struct sbx_view_dir *dir, const char *name, struct sbx_node *ret)
{
	struct stat st;
	ssize_t i = find_part(dir, name, &st);

	if (i < 0)
		return (int)i;
	*ret = (struct sbx_node){.st = st, .layer = dir->parts[i].layer};
	return 0;
}

int sbx_view_dir_openat(struct sbx_view_dir *dir, const char *name, int flags)
{
	struct stat st;
	ssize_t i = find_part(dir, name, &st);

	if (i < 0)
		return (int)i;
	return sbx_fs_open_beneath(dir->parts[i].fd, name, flags, 0, 0);
}

int sbx_view_dir_fd_of(struct sbx_view_dir *dir, const char *name, int *ret_borrowed_fd)
{
	struct stat st;
	ssize_t i = find_part(dir, name, &st);

	if (i < 0)
		return (int)i;
	*ret_borrowed_fd = dir->parts[i].fd;
	return 0;
}

/* Why name, found first in a layer's directory, is none: -ENOENT, -ELOOP or -ENOTDIR. */
static int why_not_dir(int fd, const char *name)
{
	struct stat st;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (sbx_is_whiteout(&st))
		return -ENOENT;
	return S_ISLNK(st.st_mode) ? -ELOOP : -ENOTDIR;
}

/* Adds name of one part to dir: 1 to go on below, 0 when nothing below counts. */
static int enter_part(struct sbx_view_dir *dir, const struct view_part *part, const char *name)
{
	int fd = openat(part->fd, name, OPEN_DIR_FLAGS), r;

	if (fd < 0) {
		if (errno == ENOENT)
			return 1;
		if (errno != ENOTDIR && errno != ELOOP)
			return -errno;
		/* a whiteout or a file: it hides what is below, and is hidden by what is above */
		return dir->n ? 0 : why_not_dir(part->fd, name);
	}
	dir->parts[dir->n++] = (struct view_part){.fd = fd, .layer = part->layer};
	r = sbx_is_opaque(fd);
	return r < 0 ? r : !r;
}

/* The same as sbx_view_dir_enter(), but -ELOOP for a symlink. */
static int enter(struct sbx_view_dir *dir, const char *name, struct sbx_view_dir **ret)
{
	SBX_VIEW_DIR struct sbx_view_dir *sub = NULL;

	if (!is_component(name))
		return -EINVAL;
	sub = dir_new(dir->view, dir->n);
	if (!sub)
		return -ENOMEM;
	for (size_t i = 0; i < dir->n; i++) {
		int r = enter_part(sub, &dir->parts[i], name);

		if (r < 0)
			return r;
		if (r == 0) {
			sub->covers = true;
			break;
		}
	}
	if (!sub->n)
		return -ENOENT;
	*ret = sbx_take(&sub);
	return 0;
}

int sbx_view_dir_enter(struct sbx_view_dir *dir, const char *name, struct sbx_view_dir **ret)
{
	int r = enter(dir, name, ret);

	return r == -ELOOP ? -ENOTDIR : r;
}

struct listed {
	char *name;
	size_t part; /* topmost first, as in struct sbx_view_dir */
	bool whiteout;
};

struct listing {
	struct listed *items;
	size_t n;
	size_t capacity;
};

static void listing_done(struct listing *listing)
{
	for (size_t i = 0; i < listing->n; i++)
		sbx_free_pointer(&listing->items[i].name);
	sbx_free_pointer(&listing->items);
}

static int listing_add(struct listing *listing, const char *name, size_t part, bool whiteout)
{
	if (sbx_grow(&listing->items, &listing->capacity, listing->n) < 0)
		return -ENOMEM;
	listing->items[listing->n].name = strdup(name);
	if (!listing->items[listing->n].name)
		return -ENOMEM;
	listing->items[listing->n].part = part;
	listing->items[listing->n].whiteout = whiteout;
	listing->n++;
	return 0;
}

static void close_dirp(DIR **dirp)
{
	int saved = errno;

	if (*dirp)
		(void)closedir(*dirp); /* only read from */
	errno = saved;
}

/* 1, 0 or -errno. Most file systems tell the type, so that only devices are asked again. */
static int entry_is_whiteout(int fd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_CHR && entry->d_type != DT_UNKNOWN)
		return 0;
	if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return sbx_is_whiteout(&st);
}

static int list_part(struct sbx_view_dir *dir, size_t part, struct listing *listing)
{
	SBX_CLEANUP(close_dirp) DIR *dirp = NULL;
	SBX_CLOSE int fd = -EBADF;
	struct dirent *entry;

	/* a description of its own: the offset of the part's descriptor is shared */
	fd = openat(dir->parts[part].fd, ".", OPEN_DIR_FLAGS);
	if (fd < 0)
		return -errno;
	dirp = fdopendir(fd);
	if (!dirp)
		return -errno;
	(void)sbx_fd_take(&fd); /* dirp's now */
	while (errno = 0, (entry = readdir(dirp))) {
		int r;

		if (is_dots(entry->d_name))
			continue;
		r = entry_is_whiteout(dir->parts[part].fd, entry);
		if (r < 0)
			return r;
		r = listing_add(listing, entry->d_name, part, r);
		if (r < 0)
			return r;
	}
	return -errno;
}

static int compare_listed(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r ? r : (x->part > y->part) - (x->part < y->part);
}

/* Moves the names out of a sorted listing, each once; without whiteouts if the topmost is one. */
static size_t take_names(struct listing *listing, bool with_whiteouts, char **names)
{
	const char *last = NULL;
	size_t n = 0;

	for (size_t i = 0; i < listing->n; i++) {
		struct listed *item = &listing->items[i];
		bool is_first = !last || strcmp(last, item->name) != 0;

		last = item->name;
		if (is_first && (with_whiteouts || !item->whiteout))
			names[n++] = sbx_take(&item->name);
	}
	return n;
}

static int list_names(
	struct sbx_view_dir *dir, bool with_whiteouts, char ***ret_names, size_t *ret_n)
{
	SBX_CLEANUP(listing_done) struct listing listing = {0};
	char **names;
	int r;

	for (size_t i = 0; i < dir->n; i++) {
		r = list_part(dir, i, &listing);
		if (r < 0)
			return r;
	}
	if (listing.n)
		qsort(listing.items, listing.n, sizeof(*listing.items), compare_listed);
	names = calloc(listing.n + 1, sizeof(*names));
	if (!names)
		return -ENOMEM;
	*ret_n = take_names(&listing, with_whiteouts, names);
	*ret_names = names;
	return 0;
}

int sbx_view_dir_list(struct sbx_view_dir *dir, char ***ret_names, size_t *ret_n)
{
	return list_names(dir, false, ret_names, ret_n);
}

int view_dir_list_raw(struct sbx_view_dir *dir, char ***ret_names, size_t *ret_n)
{
	return list_names(dir, true, ret_names, ret_n);
}

bool view_dir_covers(const struct sbx_view_dir *dir)
{
	return dir->covers;
}

size_t view_dir_n_fds(const struct sbx_view_dir *dir)
{
	size_t n = 0;

	for (size_t i = 0; i < dir->n && !dir->borrowed; i++)
		n += dir->parts[i].fd >= 0;
	return n;
}

/* The part of below that is of the same layer as part, or NULL. Both lists go down the layers. */
static const struct view_part *same_layer(
	const struct sbx_view_dir *below, const struct view_part *part, size_t *at)
{
	while (*at < below->n && below->parts[*at].layer > part->layer)
		(*at)++;
	return *at < below->n && below->parts[*at].layer == part->layer ? &below->parts[*at] : NULL;
}

int view_dir_give_up(struct sbx_view_dir *dir, const struct sbx_view_dir *below)
{
	size_t at = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < dir->n && !dir->borrowed; i++) {
		struct view_part *part = &dir->parts[i];

		if (!same_layer(below, part, &at))
			continue;
		r = place_of(part->fd, &part->place);
		if (r == 0)
			place_give_up(&part->place);
		if (r == 0)
			part->fd = -EBADF;
	}
	return r;
}

int view_dir_find_again(struct sbx_view_dir *dir, const struct sbx_view_dir *below)
{
	size_t at = 0;

	for (size_t i = 0; i < dir->n; i++) {
		struct view_part *part = &dir->parts[i];
		const struct view_part *under = same_layer(below, part, &at);
		int r;

		if (part->fd >= 0 || !under)
			continue;
		r = place_find_again(&part->place, under->fd);
		if (r < 0)
			return r;
		part->fd = sbx_fd_take(&part->place.fd);
	}
	return 0;
}

int view_dir_top_fd(const struct sbx_view_dir *dir)
{
	return dir->n ? dir->parts[0].fd : -EBADF;
}

void sbx_names_free(char **names)
{
	if (!names)
		return;
	for (char **name = names; *name; name++)
		sbx_free_pointer(name);
	sbx_free_pointer(&names);
}

/* Cuts the next component off *path into name: 1, 0 at the end, -ENAMETOOLONG. */
static int next_component(const char **path, char name[static NAME_MAX + 1])
{
	const char *start = *path + strspn(*path, "/");
	size_t size = strcspn(start, "/");

	if (!size)
		return 0;
	if (size > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, start, size);
	name[size] = '\0';
	*path = start + size;
	return 1;
}

/*
 * Opens the directory that holds the last component of path and yields that component; an empty
 * one means that path is the root.
 */
static int walk(struct sbx_view *view, const char *path, struct sbx_view_dir **ret,
	char ret_last[static NAME_MAX + 1])
{
	SBX_VIEW_DIR struct sbx_view_dir *dir = NULL;
	char name[NAME_MAX + 1];
	int r;

	r = root_open(view, &dir);
	if (r < 0)
		return r;
	ret_last[0] = '\0';
	while ((r = next_component(&path, name)) > 0) {
		if (*ret_last) {
			struct sbx_view_dir *sub;

			r = enter(dir, ret_last, &sub);
			if (r < 0)
				return r;
			sbx_view_dir_free(dir);
			dir = sub;
		}
		memcpy(ret_last, name, strlen(name) + 1);
	}
	if (r < 0)
		return r;
	*ret = sbx_take(&dir);
	return 0;
}

int sbx_view_dir_open(struct sbx_view *view, const char *path, struct sbx_view_dir **ret)
{
	SBX_VIEW_DIR struct sbx_view_dir *dir = NULL;
	char last[NAME_MAX + 1];
	int r = walk(view, path, &dir, last);

	if (r < 0)
		return r == -ELOOP ? -ENOTDIR : r;
	if (*last)
		return sbx_view_dir_enter(dir, last, ret);
	*ret = sbx_take(&dir);
	return 0;
}

int sbx_view_lookup(struct sbx_view *view, const char *path, struct sbx_node *ret)
{
	SBX_VIEW_DIR struct sbx_view_dir *dir = NULL;
	char last[NAME_MAX + 1];
	int r = walk(view, path, &dir, last);

	if (r < 0)
		return r;
	return *last ? sbx_view_dir_lookup(dir, last, ret) : sbx_view_dir_node(dir, ret);
}

int sbx_view_openat(struct sbx_view *view, const char *path, int flags)
{
	SBX_VIEW_DIR struct sbx_view_dir *dir = NULL;
	char last[NAME_MAX + 1];
	int r = walk(view, path, &dir, last);

	if (r < 0)
		return r;
	if (*last)
		return sbx_view_dir_openat(dir, last, flags);
	if (!dir->n)
		return -ENOENT;
	return sbx_fs_open_beneath(dir->parts[0].fd, ".", flags, 0, 0);
}
