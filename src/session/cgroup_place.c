/* SPDX-License-Identifier: MIT */
#include "cgroup_place.h"

#include <stdio.h>
#include <string.h>

static const char *const controller_names[SBX_CGROUP_RESOURCES] = {
	[SBX_CGROUP_MEMORY] = "memory",
	[SBX_CGROUP_PIDS] = "pids",
	[SBX_CGROUP_CPU] = "cpu",
};

/* The fields of a mountinfo line that matter here. */
struct mount_line {
	const char *root, *mount_point, *type, *options;
	size_t root_size, mount_point_size, type_size, options_size;
};

const char *sbx_cgroup_controller_name(enum sbx_cgroup_resource resource)
{
	return controller_names[resource];
}

bool sbx_cgroup_list_has(const char *list, size_t size, char sep, const char *word)
{
	const char *end = list + size;

	while (list < end) {
		const char *stop = memchr(list, sep, (size_t)(end - list));
		size_t n = (size_t)((stop ? stop : end) - list);

		if (n == strlen(word) && !memcmp(list, word, n))
			return true;
		list += n + 1;
	}
	return false;
}

/* The next word of the line; false at its end. */
static bool next_word(const char **at, const char *end, const char **ret, size_t *ret_size)
{
	const char *stop;

	if (*at >= end)
		return false;
	stop = memchr(*at, ' ', (size_t)(end - *at));
	if (!stop)
		stop = end;
	*ret = *at;
	*ret_size = (size_t)(stop - *at);
	*at = stop + 1;
	return true;
}

/* "36 35 98:0 /root /mnt rw,noatime master:1 ... - type source options" */
static bool parse_mount_line(const char *line, const char *end, struct mount_line *ret)
{
	const char *word;
	size_t size;

	for (int field = 0; field < 6; field++) {
		if (!next_word(&line, end, &word, &size))
			return false;
		if (field == 3) {
			ret->root = word;
			ret->root_size = size;
		} else if (field == 4) {
			ret->mount_point = word;
			ret->mount_point_size = size;
		}
	}
	do {
		if (!next_word(&line, end, &word, &size))
			return false;
	} while (size != 1 || *word != '-');
	return next_word(&line, end, &ret->type, &ret->type_size) &&
	       next_word(&line, end, &word, &size) &&
	       next_word(&line, end, &ret->options, &ret->options_size);
}

/* Blanks and such stand there as \040. */
static bool unescape(const char *text, size_t size, char ret[static PATH_MAX])
{
	size_t n = 0;

	if (size >= PATH_MAX)
		return false;
	for (size_t i = 0; i < size; i++) {
		bool escaped = text[i] == '\\' && i + 3 < size;

		ret[n++] = escaped ? (char)((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
					     (text[i + 3] - '0'))
				   : text[i];
		i += escaped ? 3 : 0;
	}
	ret[n] = '\0';
	return true;
}

static unsigned int controllers_of(const struct mount_line *line)
{
	unsigned int found = 0;

	for (size_t i = 0; i < SBX_CGROUP_RESOURCES; i++)
		if (sbx_cgroup_list_has(
			    line->options, line->options_size, ',', controller_names[i]))
			found |= 1U << i;
	return found;
}

static bool is_known(
	const struct sbx_cgroup_place *places, size_t n, const struct sbx_cgroup_place *place)
{
	for (size_t i = 0; i < n; i++)
		if (places[i].unified == place->unified &&
			(place->unified || places[i].controllers & place->controllers))
			return true;
	return false;
}

/* "0::/path" is the line of v2. A group outside what is mounted is not visible: then "". */
static void find_own(
	const char *cgroup, const struct mount_line *mount, struct sbx_cgroup_place *place)
{
	const char *line = !strncmp(cgroup, "0::/", 4) ? cgroup : strstr(cgroup, "\n0::/");
	size_t size, root_size = mount->root_size;

	place->own[0] = '\0';
	if (!place->unified || !line)
		return;
	line += (*line == '\n') + strlen("0::");
	size = strcspn(line, "\n");
	if (root_size == 1)
		root_size = 0; /* "/" */
	if (size < root_size || memcmp(line, mount->root, root_size) != 0 ||
		line[root_size] != '/' || strlen(place->mount_point) + size >= PATH_MAX)
		return;
	line += root_size;
	size -= root_size;
	if (size > 1)
		(void)snprintf(place->own, sizeof(place->own), "%.*s%.*s",
			(int)strlen(place->mount_point), place->mount_point, (int)size, line);
}

static bool type_is(const struct mount_line *line, const char *type)
{
	return line->type_size == strlen(type) && !memcmp(line->type, type, line->type_size);
}

static bool parse_place(
	const char *text, const char *end, const char *cgroup, struct sbx_cgroup_place *ret)
{
	struct mount_line line = {0};

	if (!parse_mount_line(text, end, &line))
		return false;
	ret->unified = type_is(&line, "cgroup2");
	ret->controllers = type_is(&line, "cgroup") ? controllers_of(&line) : 0;
	if ((!ret->unified && !ret->controllers) ||
		!unescape(line.mount_point, line.mount_point_size, ret->mount_point))
		return false;
	find_own(cgroup, &line, ret);
	return true;
}

size_t sbx_cgroup_places(const char *mountinfo, const char *cgroup,
	struct sbx_cgroup_place ret[static SBX_CGROUP_PLACES_MAX])
{
	size_t n = 0;

	while (*mountinfo && n < SBX_CGROUP_PLACES_MAX) {
		const char *end = mountinfo + strcspn(mountinfo, "\n");

		if (parse_place(mountinfo, end, cgroup, &ret[n]) && !is_known(ret, n, &ret[n]))
			n++;
		mountinfo = end + (*end == '\n');
	}
	return n;
}
