/* SPDX-License-Identifier: MIT */
/*
 * Renames: which deleted file an added one was. Equal contents are paired first, files that kept
 * their base name before others. The rest is compared by the lines that two files share, and the
 * most similar pairs are taken as long as both files are free.
 *
 * A file can also be renamed over another, or two exchange their names. Then a path has content
 * before and after, which have little in common, and one of them equals that of another path.
 */
#include "own_internal.h"

#include <string.h>

#include "sbx/digest.h"

#define SAME_NAME_BONUS 20 /* per cent of likeness that an unchanged base name is worth */

/* A line for the comparison of whole files: what counts of it, line end aside, and its hash. */
struct weighed_line {
	uint32_t hash;
	uint32_t n_bytes;
};

enum content {
	CONTENT_OLD,
	CONTENT_NEW,
};

struct candidate {
	struct own_file *own;
	enum content content;
	const void *data;
	size_t size;
	const char *name;         /* the path's last component */
	struct sbx_digest digest; /* zeros while no file of the other list has this size */
	bool is_measured;
	struct weighed_line *lines; /* sorted */
	uint32_t n_lines;
	uint64_t n_bytes; /* of all lines */
};

struct candidates {
	struct candidate *items; /* in the order of paths */
	size_t n;
};

struct likeness {
	uint32_t score;
	uint32_t added;
	uint32_t deleted;
};

struct likeness_list {
	struct likeness *items;
	size_t n;
	size_t capacity;
};

static void candidates_done(struct candidates *candidates)
{
	for (size_t i = 0; i < candidates->n; i++)
		sbx_free_pointer(&candidates->items[i].lines);
	sbx_free_pointer(&candidates->items);
}

static void likeness_list_done(struct likeness_list *list)
{
	sbx_free_pointer(&list->items);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static struct candidate candidate_of(struct own_file *own, enum content content)
{
	const struct sbx_own_file *file = own->file;

	return (struct candidate){
		.own = own,
		.content = content,
		.data = content == CONTENT_NEW ? file->new_data : file->old_data,
		.size = content == CONTENT_NEW ? file->new_size : file->old_size,
		.name = base_name(file->path),
	};
}

static bool is_same_content(const struct sbx_own_file *file)
{
	return file->old_size == file->new_size &&
	       (file->old_size == 0 || !memcmp(file->old_data, file->new_data, file->old_size));
}

/* Whether a file can have got its new content from elsewhere, or its old one gone elsewhere. */
static bool is_candidate(const struct own_file *own, enum content content, bool with_changed)
{
	const struct sbx_own_file *file = own->file;

	if (file->has_old && file->has_new)
		return with_changed && !is_same_content(file);
	if (content == CONTENT_NEW)
		return file->has_new && !own->source;
	return file->has_old && !own->is_source;
}

static int collect(struct own_file *files, size_t n_files, enum content content, bool with_changed,
	struct candidates *ret)
{
	ret->items = calloc(n_files + 1, sizeof(*ret->items));
	if (!ret->items)
		return -ENOMEM;
	for (size_t i = 0; i < n_files; i++)
		if (is_candidate(&files[i], content, with_changed))
			ret->items[ret->n++] = candidate_of(&files[i], content);
	return 0;
}

/* Of a list of new contents: that it has come from somewhere; of old ones: that it has gone. */
static bool is_paired(const struct candidate *candidate)
{
	return candidate->content == CONTENT_NEW ? candidate->own->source != NULL
						 : candidate->own->is_source;
}

static void pair(struct candidate *added, struct candidate *deleted)
{
	deleted->own->is_source = true;
	added->own->source = deleted->own->file;
	added->own->file->renamed_from = deleted->own->file->path;
}

/* -------- equal contents */

static int compare_contents(const struct candidate *x, const struct candidate *y)
{
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return memcmp(&x->digest, &y->digest, sizeof(x->digest));
}

/* What files of one content are paired by, base name first. */
static int by_content(const void *a, const void *b)
{
	const struct candidate *x = *(struct candidate *const *)a;
	const struct candidate *y = *(struct candidate *const *)b;
	int r = compare_contents(x, y);

	if (r == 0)
		r = strcmp(x->name, y->name);
	return r ? r : strcmp(x->own->file->path, y->own->file->path);
}

static struct candidate **sort_by_content(const struct candidates *candidates)
{
	struct candidate **sorted = malloc((candidates->n + 1) * sizeof(struct candidate *));

	if (!sorted)
		return NULL;
	for (size_t i = 0; i < candidates->n; i++)
		sorted[i] = &candidates->items[i];
	qsort(sorted, candidates->n, sizeof(struct candidate *), by_content);
	return sorted;
}

/* Reads only files that can have an equal: those whose size occurs in the other list. */
static void digest_equal_sizes(
	struct candidate **x, size_t n_x, struct candidate *const *y, size_t n_y)
{
	for (size_t i = 0, j = 0; i < n_x; i++) {
		while (j < n_y && y[j]->size < x[i]->size)
			j++;
		if (j < n_y && y[j]->size == x[i]->size)
			sbx_digest_bytes(x[i]->data, x[i]->size, &x[i]->digest);
	}
}

/* Pairs free files of one content in their order, or only those with one base name. */
static void pair_in_order(struct candidate **added, size_t n_added, struct candidate **deleted,
	size_t n_deleted, bool same_name)
{
	for (size_t i = 0, j = 0; i < n_added && j < n_deleted;) {
		int order = same_name ? strcmp(added[i]->name, deleted[j]->name) : 0;

		if (is_paired(added[i]) || order < 0) {
			i++;
		} else if (is_paired(deleted[j]) || order > 0) {
			j++;
		} else {
			pair(added[i++], deleted[j++]);
		}
	}
}

/* How many files from the first on have its content. */
static size_t run_length(struct candidate *const *sorted, size_t n)
{
	size_t i = 1;

	while (i < n && compare_contents(sorted[0], sorted[i]) == 0)
		i++;
	return i;
}

static void pair_sorted(
	struct candidate **added, size_t n_added, struct candidate **deleted, size_t n_deleted)
{
	for (size_t i = 0, j = 0; i < n_added && j < n_deleted;) {
		int order = compare_contents(added[i], deleted[j]);
		size_t n = order <= 0 ? run_length(added + i, n_added - i) : 0;
		size_t m = order >= 0 ? run_length(deleted + j, n_deleted - j) : 0;

		if (order == 0 && added[i]->size > 0) {
			pair_in_order(added + i, n, deleted + j, m, true);
			pair_in_order(added + i, n, deleted + j, m, false);
		}
		i += n;
		j += m;
	}
}

/* Both lists by content, which is read only where two sizes are equal. */
static int sort_both(const struct candidates *to, const struct candidates *from,
	struct candidate ***ret_to, struct candidate ***ret_from)
{
	struct candidate **x = sort_by_content(to);
	struct candidate **y = sort_by_content(from);

	*ret_to = x;
	*ret_from = y;
	if (!x || !y)
		return -ENOMEM;
	digest_equal_sizes(x, to->n, y, from->n);
	digest_equal_sizes(y, from->n, x, to->n);
	qsort(x, to->n, sizeof(struct candidate *), by_content);
	qsort(y, from->n, sizeof(struct candidate *), by_content);
	return 0;
}

static int pair_equal_contents(struct candidates *added, struct candidates *deleted)
{
	SBX_FREE struct candidate **x = NULL;
	SBX_FREE struct candidate **y = NULL;
	int r;

	r = sort_both(added, deleted, &x, &y);
	if (r == 0)
		pair_sorted(x, added->n, y, deleted->n);
	return r;
}

/* -------- similar contents */

static int by_hash(const void *a, const void *b)
{
	const struct weighed_line *x = a;
	const struct weighed_line *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->n_bytes < y->n_bytes ? -1 : x->n_bytes > y->n_bytes;
}

static int measure(struct candidate *candidate, struct sbx_err *err)
{
	SBX_LINES struct sbx_lines lines = SBX_LINES_INIT;
	int r;

	if (candidate->is_measured)
		return 0;
	r = sbx_lines_split(candidate->data, candidate->size, SBX_LINES_LOOSE, &lines, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "content of %s", candidate->own->file->path);
	candidate->lines = malloc(((size_t)lines.n + 1) * sizeof(*candidate->lines));
	if (!candidate->lines)
		return sbx_err_set(err, ENOMEM, "read %s: %m", candidate->own->file->path);
	for (uint32_t i = 0; i < lines.n; i++) {
		candidate->lines[i].hash = lines.hashes[i];
		candidate->lines[i].n_bytes = (uint32_t)sbx_line_key_size(&lines, i) + 1;
		candidate->n_bytes += candidate->lines[i].n_bytes;
	}
	candidate->n_lines = lines.n;
	qsort(candidate->lines, lines.n, sizeof(*candidate->lines), by_hash);
	candidate->is_measured = true;
	return 0;
}

static uint64_t shared_bytes(const struct candidate *x, const struct candidate *y)
{
	uint64_t sum = 0;

	for (uint32_t i = 0, j = 0; i < x->n_lines && j < y->n_lines;) {
		int order = by_hash(&x->lines[i], &y->lines[j]);

		if (order == 0)
			sum += x->lines[i].n_bytes;
		i += order <= 0;
		j += order >= 0;
	}
	return sum;
}

/* In per cent; 0 when it is less than a rename takes. */
static uint32_t likeness_of(const struct candidate *x, const struct candidate *y)
{
	uint64_t larger = SBX_MAX(x->n_bytes, y->n_bytes);
	uint64_t percent;

	if (SBX_MIN(x->n_bytes, y->n_bytes) * 100 < larger * SBX_OWN_RENAME_MIN)
		return 0;
	percent = larger ? shared_bytes(x, y) * 100 / larger : 0;
	return percent < SBX_OWN_RENAME_MIN ? 0 : (uint32_t)percent;
}

static int add_likeness(struct likeness_list *list, const struct likeness *likeness)
{
	if (list->n == list->capacity) {
		size_t capacity = list->capacity * 2 + 64;
		struct likeness *items = reallocarray(list->items, capacity, sizeof(*items));

		if (!items)
			return -ENOMEM;
		list->items = items;
		list->capacity = capacity;
	}
	list->items[list->n++] = *likeness;
	return 0;
}

/* Contents whose sizes alone rule a rename out; half is left for what line ends may weigh. */
static bool is_far(const struct candidate *x, const struct candidate *y)
{
	return SBX_MIN(x->size, y->size) * 200 < SBX_MAX(x->size, y->size) * SBX_OWN_RENAME_MIN;
}

static int compare_pair(struct candidate *added, struct candidate *deleted, uint64_t *cost,
	uint32_t *ret_score, struct sbx_err *err)
{
	int r;

	*ret_score = 0;
	if (is_paired(added) || is_paired(deleted) || is_far(added, deleted))
		return 0;
	r = measure(added, err);
	if (r == 0)
		r = measure(deleted, err);
	if (r < 0)
		return r;
	*ret_score = likeness_of(added, deleted);
	if (*ret_score > 0 && !strcmp(added->name, deleted->name))
		*ret_score += SAME_NAME_BONUS;
	*cost += (uint64_t)added->n_lines + deleted->n_lines;
	return 0;
}

static int find_likenesses(struct candidates *added, struct candidates *deleted,
	struct likeness_list *ret, struct sbx_err *err)
{
	struct likeness likeness;
	uint64_t cost = 0;
	int r = 0;

	for (uint32_t i = 0; i < added->n; i++) {
		for (uint32_t j = 0; j < deleted->n && cost < SBX_OWN_RENAME_COST_MAX; j++) {
			likeness.added = i;
			likeness.deleted = j;
			r = compare_pair(
				&added->items[i], &deleted->items[j], &cost, &likeness.score, err);
			if (r == 0 && likeness.score > 0)
				r = add_likeness(ret, &likeness);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int by_score(const void *a, const void *b)
{
	const struct likeness *x = a;
	const struct likeness *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	if (x->added != y->added)
		return x->added < y->added ? -1 : 1;
	return x->deleted < y->deleted ? -1 : x->deleted > y->deleted;
}

static size_t count_free(const struct candidates *candidates)
{
	size_t n = 0;

	for (size_t i = 0; i < candidates->n; i++)
		n += !is_paired(&candidates->items[i]);
	return n;
}

static int pair_similar_contents(
	struct candidates *added, struct candidates *deleted, struct sbx_err *err)
{
	SBX_CLEANUP(likeness_list_done) struct likeness_list list = {0};
	int r;

	if (count_free(added) * count_free(deleted) > SBX_OWN_RENAME_PAIRS_MAX)
		return 0;
	r = find_likenesses(added, deleted, &list, err);
	if (r < 0)
		return r;
	if (list.n > 0)
		qsort(list.items, list.n, sizeof(*list.items), by_score);
	for (size_t i = 0; i < list.n; i++) {
		struct candidate *x = &added->items[list.items[i].added];
		struct candidate *y = &deleted->items[list.items[i].deleted];

		if (!is_paired(x) && !is_paired(y))
			pair(x, y);
	}
	return 0;
}

/* -------- contents that went to or came from a path that has another one */

static bool is_changed(const struct own_file *own)
{
	return own->file->has_old && own->file->has_new;
}

/* Whether the path's old and new content have too little in common to be one text. */
static int check_rewritten(struct own_file *own, bool *ret, struct sbx_err *err)
{
	struct candidate sides[] = {
		candidate_of(own, CONTENT_OLD),
		candidate_of(own, CONTENT_NEW),
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < SBX_N_ELEMENTS(sides); i++)
		r = measure(&sides[i], err);
	*ret = r == 0 && likeness_of(&sides[0], &sides[1]) == 0;
	for (size_t i = 0; i < SBX_N_ELEMENTS(sides); i++)
		sbx_free_pointer(&sides[i].lines);
	return r;
}

/* Whether a candidate may be paired although its path has two contents. */
static int check_free(struct candidate *candidate, bool *ret, struct sbx_err *err)
{
	*ret = !is_paired(candidate);
	if (!*ret || !is_changed(candidate->own))
		return 0;
	return check_rewritten(candidate->own, ret, err);
}

/* The rest of one content. Pairs of an added with a deleted file have been made before. */
static int pair_over(struct candidate **to, size_t n_to, struct candidate **from, size_t n_from,
	struct sbx_err *err)
{
	size_t i = 0;
	size_t j = 0;
	bool is_free;
	int r = 0;

	while (r == 0 && i < n_to && j < n_from) {
		r = check_free(to[i], &is_free, err);
		if (r < 0 || !is_free) {
			i++;
			continue;
		}
		r = check_free(from[j], &is_free, err);
		if (r == 0 && is_free)
			pair(to[i++], from[j]);
		j++;
	}
	return r;
}

/* Small contents are equal by chance: a counter, a flag, a version. */
static bool has_weight(const struct candidate *candidate)
{
	const unsigned char *p = candidate->data;
	size_t weight = 0;

	for (size_t i = 0; i < candidate->size && weight < SBX_OWN_MOVE_MIN; i++)
		weight += own_has_weight(p[i]);
	return weight >= SBX_OWN_MOVE_MIN;
}

static int pair_sorted_over(struct candidate **to, size_t n_to, struct candidate **from,
	size_t n_from, struct sbx_err *err)
{
	int r = 0;

	for (size_t i = 0, j = 0; r == 0 && i < n_to && j < n_from;) {
		int order = compare_contents(to[i], from[j]);
		size_t n = order <= 0 ? run_length(to + i, n_to - i) : 0;
		size_t m = order >= 0 ? run_length(from + j, n_from - j) : 0;

		if (order == 0 && has_weight(to[i]))
			r = pair_over(to + i, n, from + j, m, err);
		i += n;
		j += m;
	}
	return r;
}

static int pair_changed_paths(struct own_file *files, size_t n_files, struct sbx_err *err)
{
	SBX_CLEANUP(candidates_done) struct candidates to = {0};
	SBX_CLEANUP(candidates_done) struct candidates from = {0};
	SBX_FREE struct candidate **x = NULL;
	SBX_FREE struct candidate **y = NULL;
	int r;

	r = collect(files, n_files, CONTENT_NEW, true, &to);
	if (r == 0)
		r = collect(files, n_files, CONTENT_OLD, true, &from);
	if (r == 0)
		r = sort_both(&to, &from, &x, &y);
	if (r < 0)
		return sbx_err_set(err, -r, "pair renamed files: %m");
	return pair_sorted_over(x, to.n, y, from.n, err);
}

int own_pair_renames(struct own_file *files, size_t n_files, struct sbx_err *err)
{
	SBX_CLEANUP(candidates_done) struct candidates added = {0};
	SBX_CLEANUP(candidates_done) struct candidates deleted = {0};
	int r;

	r = collect(files, n_files, CONTENT_NEW, false, &added);
	if (r == 0)
		r = collect(files, n_files, CONTENT_OLD, false, &deleted);
	if (r == 0 && added.n > 0 && deleted.n > 0)
		r = pair_equal_contents(&added, &deleted);
	if (r < 0)
		return sbx_err_set(err, -r, "pair renamed files: %m");
	r = pair_changed_paths(files, n_files, err);
	return r < 0 ? r : pair_similar_contents(&added, &deleted, err);
}
