/* SPDX-License-Identifier: MIT */
/*
 * A list of patterns per directory, directories sorted by name. A path is asked top down: the
 * first directory above it that is ignored decides (nothing below an ignored directory can be
 * included again, nor does its own .gitignore count). For one path the lists of the directories
 * above it are asked from the deepest up, each from its last line; the first match decides.
 */
#include "sbx/ignore.h"

#include <string.h>

#include "glob.h"

#define LAST_DIR_MAX 4096

enum pattern_flags {
	PATTERN_NEGATED = 1 << 0,  /* "!..." */
	PATTERN_DIR_ONLY = 1 << 1, /* ".../" */
	PATTERN_BASENAME = 1 << 2, /* no other '/': matches the last component at any depth */
};

struct pattern {
	enum pattern_flags flags;
	char *literal; /* what stands before the first wildcard */
	size_t n_literal;
	bool has_glob; /* the rest is a glob; otherwise literal is all */
	struct glob glob;
};

struct list {
	char *dir; /* without a final '/' */
	size_t n_dir;
	struct pattern *patterns;
	size_t n_patterns;
	size_t capacity;
};

/* What a directory means for all that is below it. */
enum verdict {
	VERDICT_OPEN,    /* it is not ignored: each path below decides for itself */
	VERDICT_IGNORED, /* so is everything below */
	VERDICT_EXEMPT,  /* it is in a ".git": nothing below is ignored */
};

/* The verdict on the directory asked last: whoever walks a tree asks the same one again. */
struct last {
	bool is_set;
	enum verdict verdict;
	size_t n_dir;
	char dir[LAST_DIR_MAX];
};

struct sbx_ignore {
	struct list **lists; /* sorted by dir */
	size_t n_lists;
	size_t capacity;
	size_t n_patterns;
	size_t n_bytes;
	struct last *last; /* a memory only: it changes no answer */
};

static void pattern_done(struct pattern *pattern)
{
	free(pattern->literal);
	glob_done(&pattern->glob);
}

static void list_free(struct list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->n_patterns; i++)
		pattern_done(&list->patterns[i]);
	free(list->patterns);
	free(list->dir);
	free(list);
}

static void list_freep(struct list **list)
{
	list_free(*list);
}

int sbx_ignore_new(struct sbx_ignore **ret)
{
	SBX_IGNORE struct sbx_ignore *ignore = calloc(1, sizeof(*ignore));

	if (!ignore)
		return -ENOMEM;
	ignore->last = calloc(1, sizeof(*ignore->last));
	if (!ignore->last)
		return -ENOMEM;
	*ret = sbx_take(&ignore);
	return 0;
}

void sbx_ignore_free(struct sbx_ignore *ignore)
{
	int saved = errno;

	if (!ignore)
		return;
	for (size_t i = 0; i < ignore->n_lists; i++)
		list_free(ignore->lists[i]);
	free(ignore->lists);
	free(ignore->last);
	free(ignore);
	errno = saved;
}

static int compare_dir(const struct list *list, const char *dir, size_t n_dir)
{
	int c = memcmp(list->dir, dir, SBX_MIN(list->n_dir, n_dir));

	return c ? c : (list->n_dir > n_dir) - (list->n_dir < n_dir);
}

/* The list of dir, or NULL; ret_at is where it stands or would stand. */
static struct list *find_list(
	const struct sbx_ignore *ignore, const char *dir, size_t n_dir, size_t *ret_at)
{
	size_t low = 0, high = ignore->n_lists;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int c = compare_dir(ignore->lists[middle], dir, n_dir);

		if (c == 0) {
			*ret_at = middle;
			return ignore->lists[middle];
		}
		if (c < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_at = low;
	return NULL;
}

static int insert_list(struct sbx_ignore *ignore, size_t at, struct list *list)
{
	if (ignore->n_lists == ignore->capacity) {
		size_t capacity = ignore->capacity ? ignore->capacity * 2 : 8;
		struct list **lists = reallocarray(ignore->lists, capacity, sizeof(struct list *));

		if (!lists)
			return -ENOMEM;
		ignore->lists = lists;
		ignore->capacity = capacity;
	}
	memmove(ignore->lists + at + 1, ignore->lists + at,
		(ignore->n_lists - at) * sizeof(struct list *));
	ignore->lists[at] = list;
	ignore->n_lists++;
	return 0;
}

static int ensure_list(
	struct sbx_ignore *ignore, const char *dir, struct list **ret, struct sbx_err *err)
{
	SBX_CLEANUP(list_freep) struct list *list = NULL;
	size_t at;

	*ret = find_list(ignore, dir, strlen(dir), &at);
	if (*ret)
		return 0;
	if (ignore->n_lists >= SBX_IGNORE_FILES_MAX)
		return sbx_err_set(err, E2BIG, "%s/.gitignore: more than %d such files", dir,
			SBX_IGNORE_FILES_MAX);
	list = calloc(1, sizeof(*list));
	if (!list)
		return sbx_err_set(err, ENOMEM, "%s/.gitignore: %m", dir);
	list->dir = strdup(dir);
	list->n_dir = strlen(dir);
	if (!list->dir || insert_list(ignore, at, list) < 0)
		return sbx_err_set(err, ENOMEM, "%s/.gitignore: %m", dir);
	*ret = sbx_take(&list);
	return 0;
}

/* The length of line without its unescaped trailing spaces (tabs stay). */
static size_t trim_spaces(const char *line, size_t size)
{
	size_t end = 0;

	for (size_t i = 0; i < size; i++) {
		if (line[i] == ' ')
			continue;
		if (line[i] == '\\') {
			i++;
			if (i == size)
				return size;
		}
		end = i + 1;
	}
	return end;
}

/*
 * Splits off the marks around a pattern. What remains is the pattern proper; a leading '/' only
 * anchors, and is dropped.
 */
static enum pattern_flags parse_marks(const char **line, size_t *size)
{
	enum pattern_flags flags = 0;

	if (*size && **line == '!') {
		flags |= PATTERN_NEGATED;
		++*line;
		--*size;
	}
	if (*size && (*line)[*size - 1] == '/') {
		flags |= PATTERN_DIR_ONLY;
		--*size;
	}
	if (!memchr(*line, '/', *size))
		flags |= PATTERN_BASENAME;
	else if (**line == '/') {
		++*line;
		--*size;
	}
	return flags;
}

static size_t literal_length(const char *line, size_t size)
{
	size_t n = 0;

	while (n < size && !memchr("*?[\\", line[n], 4))
		n++;
	return n;
}

/* 0; -EINVAL when the line can match nothing. */
static int pattern_parse(const char *line, size_t size, struct pattern *ret)
{
	struct pattern pattern = {.flags = parse_marks(&line, &size)};
	int r;

	if (size == 0 || size > SBX_IGNORE_LINE_MAX)
		return -EINVAL;
	pattern.n_literal = literal_length(line, size);
	pattern.has_glob = pattern.n_literal < size;
	if (pattern.has_glob) {
		/*
		 * git takes the literal start off before it matches the rest, so that in "x/a**"
		 * the stars stand at the start of a pattern and cross '/'. With a name alone
		 * there is no '/' to cross.
		 */
		r = glob_compile(line + pattern.n_literal, size - pattern.n_literal, &pattern.glob);
		if (r < 0)
			return r;
	}
	pattern.literal = strndup(line, pattern.n_literal);
	if (!pattern.literal) {
		glob_done(&pattern.glob);
		return -ENOMEM;
	}
	*ret = pattern;
	return 0;
}

static int list_push(struct list *list, const struct pattern *pattern)
{
	if (list->n_patterns == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 4;
		struct pattern *patterns =
			reallocarray(list->patterns, capacity, sizeof(*list->patterns));

		if (!patterns)
			return -ENOMEM;
		list->patterns = patterns;
		list->capacity = capacity;
	}
	list->patterns[list->n_patterns++] = *pattern;
	return 0;
}

static int add_line(struct sbx_ignore *ignore, struct list *list, const char *line, size_t size,
	struct sbx_err *err)
{
	struct pattern pattern;
	int r;

	size = trim_spaces(line, strnlen(line, size)); /* git's lines end at a NUL */
	r = pattern_parse(line, size, &pattern);
	if (r == -EINVAL)
		return 0;
	if (r < 0)
		return sbx_err_set(err, -r, "%s/.gitignore: %m", list->dir);
	if (ignore->n_patterns >= SBX_IGNORE_PATTERNS_MAX ||
		size > SBX_IGNORE_BYTES_MAX - ignore->n_bytes) {
		pattern_done(&pattern);
		return sbx_err_set(err, E2BIG,
			"%s/.gitignore: the tree has more than %d ignore patterns or %d bytes of "
			"them",
			list->dir, SBX_IGNORE_PATTERNS_MAX, SBX_IGNORE_BYTES_MAX);
	}
	r = list_push(list, &pattern);
	if (r < 0) {
		pattern_done(&pattern);
		return sbx_err_set(err, -r, "%s/.gitignore: %m", list->dir);
	}
	ignore->n_patterns++;
	ignore->n_bytes += size;
	return 0;
}

int sbx_ignore_add(struct sbx_ignore *ignore, const char *dir, const char *text, size_t size,
	struct sbx_err *err)
{
	const char *end = text + size;
	struct list *list;
	int r;

	ignore->last->is_set = false;
	r = ensure_list(ignore, dir, &list, err);
	if (r < 0)
		return r;
	if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		text += 3; /* git skips a byte order mark */
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((newline ? newline : end) - text);

		if (n && *text != '#') {
			r = add_line(ignore, list, text, n - (text[n - 1] == '\r'), err);
			if (r < 0)
				return r;
		}
		text = newline ? newline + 1 : end;
	}
	return 0;
}

static bool pattern_matches(const struct pattern *pattern, const char *name, size_t size)
{
	if (size < pattern->n_literal || memcmp(name, pattern->literal, pattern->n_literal) != 0)
		return false;
	if (!pattern->has_glob)
		return size == pattern->n_literal;
	return glob_match(&pattern->glob, name + pattern->n_literal, size - pattern->n_literal);
}

/* The last line of list that matches path, or NULL. path lies below list's directory. */
static const struct pattern *list_decides(
	const struct list *list, const char *path, size_t size, bool is_dir)
{
	const char *slash = memrchr(path, '/', size);
	const char *base = slash ? slash + 1 : path;
	const char *below = list->n_dir ? path + list->n_dir + 1 : path;
	const char *end = path + size;

	for (size_t i = list->n_patterns; i-- > 0;) {
		const struct pattern *pattern = &list->patterns[i];
		const char *name = pattern->flags & PATTERN_BASENAME ? base : below;

		if (pattern->flags & PATTERN_DIR_ONLY && !is_dir)
			continue;
		if (pattern_matches(pattern, name, (size_t)(end - name)))
			return pattern;
	}
	return NULL;
}

/* Whether one path is ignored, given that no directory above it is. */
static bool ignored_itself(
	const struct sbx_ignore *ignore, const char *path, size_t size, bool is_dir)
{
	size_t n_dir = size;

	do {
		const char *slash = memrchr(path, '/', n_dir);
		const struct pattern *pattern;
		const struct list *list;
		size_t at;

		n_dir = slash ? (size_t)(slash - path) : 0;
		list = find_list(ignore, path, n_dir, &at);
		pattern = list ? list_decides(list, path, size, is_dir) : NULL;
		if (pattern)
			return !(pattern->flags & PATTERN_NEGATED);
	} while (n_dir > 0);
	return false;
}

static bool is_git(const char *component, size_t size)
{
	return size == 4 && memcmp(component, ".git", 4) == 0;
}

/* Asks the components of a directory from the top down. */
static enum verdict judge_dir(const struct sbx_ignore *ignore, const char *dir, size_t n_dir)
{
	const char *component = dir, *end = dir + n_dir;

	while (component < end) {
		const char *slash = memchr(component, '/', (size_t)(end - component));
		const char *stop = slash ? slash : end;

		if (is_git(component, (size_t)(stop - component)))
			return VERDICT_EXEMPT;
		if (ignored_itself(ignore, dir, (size_t)(stop - dir), true))
			return VERDICT_IGNORED;
		component = stop + 1;
	}
	return VERDICT_OPEN;
}

static enum verdict recall_dir(const struct sbx_ignore *ignore, const char *dir, size_t n_dir)
{
	struct last *last = ignore->last;

	if (last->is_set && last->n_dir == n_dir && memcmp(last->dir, dir, n_dir) == 0)
		return last->verdict;
	if (n_dir > sizeof(last->dir))
		return judge_dir(ignore, dir, n_dir);
	last->verdict = judge_dir(ignore, dir, n_dir);
	memcpy(last->dir, dir, n_dir);
	last->n_dir = n_dir;
	last->is_set = true;
	return last->verdict;
}

bool sbx_ignore_match(const struct sbx_ignore *ignore, const char *path, bool is_dir)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;

	if (ignore->n_patterns == 0)
		return false;
	if (slash) {
		enum verdict verdict = recall_dir(ignore, path, (size_t)(slash - path));

		if (verdict != VERDICT_OPEN)
			return verdict == VERDICT_IGNORED;
	}
	return !is_git(base, strlen(base)) && ignored_itself(ignore, path, strlen(path), is_dir);
}
