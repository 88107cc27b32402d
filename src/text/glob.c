/* SPDX-License-Identifier: MIT */
/*
 * A pattern becomes a program of one instruction per character or wildcard; matching runs all
 * alternatives side by side (the set of places in the program that the text so far can reach), so
 * that its time is bounded by text length times program length.
 */
#include "glob.h"

#include <string.h>

enum glob_op {
	GLOB_ANY = 256,        /* one byte that is not '/' */
	GLOB_STAR = 257,       /* any bytes that are not '/' */
	GLOB_STARSTAR = 258,   /* any bytes */
	GLOB_MAYBE_DIRS = 259, /* the two instructions after it ("**" and '/') may be skipped */
	GLOB_SET = 512,
};

struct compiler {
	const unsigned char *p; /* what is still to be read */
	const unsigned char *end;
	const unsigned char *start;
	struct glob *glob;
	size_t sets_capacity;
};

static void set_add(struct glob_set *set, unsigned int low, unsigned int high)
{
	for (unsigned int c = low; c <= high; c++)
		set->bits[c / 64] |= UINT64_C(1) << (c % 64);
}

static bool set_has(const struct glob_set *set, unsigned char c)
{
	return set->bits[c / 64] >> (c % 64) & 1;
}

/* The classes as git knows them: ASCII only, and white space without vertical tab and form feed. */
static const struct class
{
	const char *name;
	unsigned char ranges[10]; /* pairs low, high; ends at a pair 0, 0 */
} classes[] = {
	{"alnum", {'0', '9', 'A', 'Z', 'a', 'z'}},
	{"alpha", {'A', 'Z', 'a', 'z'}},
	{"blank", {' ', ' ', '\t', '\t'}},
	{"cntrl", {1, 31, 127, 127}},
	{"digit", {'0', '9'}},
	{"graph", {'!', '~'}},
	{"lower", {'a', 'z'}},
	{"print", {' ', '~'}},
	{"punct", {'!', '/', ':', '@', '[', '`', '{', '~'}},
	{"space", {' ', ' ', '\t', '\n', '\r', '\r'}},
	{"upper", {'A', 'Z'}},
	{"xdigit", {'0', '9', 'A', 'F', 'a', 'f'}},
};

static int set_add_class(struct glob_set *set, const unsigned char *name, size_t size)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(classes); i++) {
		const struct class *class = &classes[i];

		if (strlen(class->name) != size || memcmp(class->name, name, size) != 0)
			continue;
		for (const unsigned char *range = class->ranges; range[0]; range += 2)
			set_add(set, range[0], range[1]);
		return 0;
	}
	return -EINVAL;
}

/* At "[:": adds the class and moves behind its ':' ']'. 0 when this is no class but a plain '['. */
static int compile_class(struct compiler *c, struct glob_set *set)
{
	const unsigned char *name = c->p + 2;
	const unsigned char *close;

	if (c->end - c->p < 2 || c->p[1] != ':')
		return 0;
	close = memchr(name, ']', (size_t)(c->end - name));
	if (!close)
		return -EINVAL;
	if (close == name || close[-1] != ':')
		return 0;
	c->p = close + 1;
	return set_add_class(set, name, (size_t)(close - name - 1)) < 0 ? -EINVAL : 1;
}

/* One byte of a set, perhaps behind a backslash. */
static int compile_set_byte(struct compiler *c, unsigned char *ret)
{
	if (c->p < c->end && *c->p == '\\')
		c->p++;
	if (c->p >= c->end)
		return -EINVAL;
	*ret = *c->p++;
	return 0;
}

/* One member of a set: a class, a range's second half (previous is its first), or a byte. */
static int compile_set_member(struct compiler *c, struct glob_set *set, unsigned char *previous)
{
	unsigned char byte;
	int r;

	if (*c->p == '-' && *previous && c->end - c->p > 1 && c->p[1] != ']') {
		c->p++;
		r = compile_set_byte(c, &byte);
		if (r < 0)
			return r;
		set_add(set, *previous, byte);
		*previous = 0;
		return 0;
	}
	if (*c->p == '[') {
		r = compile_class(c, set);
		if (r != 0) {
			*previous = 0;
			return r < 0 ? r : 0;
		}
	}
	r = compile_set_byte(c, &byte);
	if (r < 0)
		return r;
	set_add(set, byte, byte);
	*previous = byte;
	return 0;
}

static int glob_new_set(struct compiler *c, struct glob_set **ret)
{
	struct glob *glob = c->glob;

	if (glob->n_sets == c->sets_capacity) {
		size_t capacity = c->sets_capacity ? c->sets_capacity * 2 : 2;
		struct glob_set *sets = reallocarray(glob->sets, capacity, sizeof(*sets));

		if (!sets)
			return -ENOMEM;
		glob->sets = sets;
		c->sets_capacity = capacity;
	}
	*ret = &glob->sets[glob->n_sets++];
	**ret = (struct glob_set){0};
	return 0;
}

/* Behind '[': reads to the closing ']'. The first member may itself be ']'. */
static int compile_set(struct compiler *c)
{
	struct glob_set *set;
	unsigned char previous = 0;
	bool negated;
	int r;

	r = glob_new_set(c, &set);
	if (r < 0)
		return r;
	negated = c->p < c->end && (*c->p == '!' || *c->p == '^');
	if (negated)
		c->p++;
	do {
		if (c->p >= c->end)
			return -EINVAL;
		r = compile_set_member(c, set, &previous);
		if (r < 0)
			return r;
	} while (c->p >= c->end || *c->p != ']');
	c->p++;
	for (size_t i = 0; negated && i < SBX_N_ELEMENTS(set->bits); i++)
		set->bits[i] = ~set->bits[i];
	set->bits['/' / 64] &= ~(UINT64_C(1) << ('/' % 64));
	c->glob->code[c->glob->n_code++] = (uint16_t)(GLOB_SET + c->glob->n_sets - 1);
	return 0;
}

/* Behind the first '*' of a run. A run of two or more that is a whole component crosses '/'. */
static void compile_star(struct compiler *c)
{
	struct glob *glob = c->glob;
	const unsigned char *run = c->p - 1;
	bool starts_component = run == c->start || run[-1] == '/';

	while (c->p < c->end && *c->p == '*')
		c->p++;
	if (c->p - run < 2 || !starts_component) {
		glob->code[glob->n_code++] = GLOB_STAR;
		return;
	}
	if (c->p < c->end && *c->p == '/') {
		/* a/ ** /b also matches a/b */
		glob->code[glob->n_code++] = GLOB_MAYBE_DIRS;
		glob->code[glob->n_code++] = GLOB_STARSTAR;
		glob->code[glob->n_code++] = '/';
		c->p++;
		return;
	}
	if (c->p == c->end || (c->end - c->p > 1 && c->p[0] == '\\' && c->p[1] == '/'))
		glob->code[glob->n_code++] = GLOB_STARSTAR;
	else
		glob->code[glob->n_code++] = GLOB_STAR;
}

static int compile_all(struct compiler *c)
{
	struct glob *glob = c->glob;
	int r;

	while (c->p < c->end) {
		unsigned char byte = *c->p++;

		switch (byte) {
		case '*':
			compile_star(c);
			break;
		case '?':
			glob->code[glob->n_code++] = GLOB_ANY;
			break;
		case '[':
			r = compile_set(c);
			if (r < 0)
				return r;
			break;
		case '\\':
			if (c->p == c->end)
				return -EINVAL;
			byte = *c->p++;
			/* fallthrough */
		default:
			glob->code[glob->n_code++] = byte;
		}
	}
	return 0;
}

static bool is_suffix(const struct glob *glob)
{
	if (glob->n_code == 0 || glob->code[0] != GLOB_STAR)
		return false;
	for (size_t i = 1; i < glob->n_code; i++)
		if (glob->code[i] >= GLOB_ANY)
			return false;
	return true;
}

void glob_done(struct glob *glob)
{
	free(glob->code);
	free(glob->sets);
	*glob = (struct glob){0};
}

int glob_compile(const char *pattern, size_t size, struct glob *ret)
{
	SBX_CLEANUP(glob_done) struct glob glob = {0};
	struct compiler c = {.glob = &glob};
	int r;

	if (size > GLOB_CODE_MAX)
		return -E2BIG;
	/* No instruction is shorter than its text, "**" and '/' with their prefix included. */
	glob.code = calloc(size + 1, sizeof(*glob.code));
	if (!glob.code)
		return -ENOMEM;
	c.p = c.start = (const unsigned char *)pattern;
	c.end = c.start + size;
	r = compile_all(&c);
	if (r < 0)
		return r;
	glob.is_suffix = is_suffix(&glob);
	*ret = glob;
	glob = (struct glob){0};
	return 0;
}

/* Adds what can be reached from the places marked in state without reading a byte. */
static void follow(const struct glob *glob, uint8_t *state)
{
	for (size_t i = 0; i < glob->n_code; i++) {
		if (!state[i])
			continue;
		switch (glob->code[i]) {
		case GLOB_MAYBE_DIRS:
			state[i + 3] = 1;
			/* fallthrough */
		case GLOB_STAR:
		case GLOB_STARSTAR:
			state[i + 1] = 1;
			break;
		default:
			break;
		}
	}
}

/* The places after reading c in now; false when there are none. */
static bool step(const struct glob *glob, const uint8_t *now, uint8_t *next, unsigned char c)
{
	bool alive = false;

	memset(next, 0, glob->n_code + 1);
	for (size_t i = 0; i < glob->n_code; i++) {
		uint16_t op = glob->code[i];
		bool stay, advance;

		if (!now[i])
			continue;
		stay = op == GLOB_STARSTAR || (op == GLOB_STAR && c != '/');
		advance = op == c || (op == GLOB_ANY && c != '/') ||
			  (op >= GLOB_SET && set_has(&glob->sets[op - GLOB_SET], c));
		next[i] |= stay;
		next[i + 1] |= advance;
		alive = alive || stay || advance;
	}
	return alive;
}

static bool suffix_matches(const struct glob *glob, const char *text, size_t size)
{
	size_t n = glob->n_code - 1;

	if (size < n || memchr(text, '/', size - n))
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[size - n + i] != glob->code[1 + i])
			return false;
	return true;
}

bool glob_match(const struct glob *glob, const char *text, size_t size)
{
	uint8_t states[2][GLOB_CODE_MAX + 1];
	uint8_t *now = states[0], *next = states[1];
	uint16_t last = glob->n_code ? glob->code[glob->n_code - 1] : GLOB_STAR;

	if (last < GLOB_ANY && (size == 0 || (unsigned char)text[size - 1] != last))
		return false;
	if (glob->is_suffix)
		return suffix_matches(glob, text, size);
	memset(now, 0, glob->n_code + 1);
	now[0] = 1;
	follow(glob, now);
	for (size_t i = 0; i < size; i++) {
		uint8_t *swap = now;

		if (!step(glob, now, next, (unsigned char)text[i]))
			return false;
		follow(glob, next);
		now = next;
		next = swap;
	}
	return now[glob->n_code];
}
