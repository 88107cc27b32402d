/* SPDX-License-Identifier: MIT */
/*
 * The places of a sandbox's groups. For each mounted hierarchy: the directory to begin in, the
 * controllers handed down to sbx/<sandbox>, what an earlier sandboxd left there removed. Then a
 * group is made and removed for trial, and each resource's limit set in it: what fails there is
 * known with its reason before the first session.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>

#include "cgroup_internal.h"
#include "sbx/fs.h"

#define TABLE_MAX   (1u << 20) /* bytes of mountinfo that are read */
#define TOP_NAME    "sbx"
#define SWEEP_TRIES 100        /* of 10 ms: a second for processes that are dying */
#define LEAF_NAME   "sandboxd" /* of a delegated v2 group: where sandboxd itself goes */

static const struct {
	const char *name;
	const char *option; /* of sbx-admin create */
} words[SBX_CGROUP_RESOURCES] = {
	[SBX_CGROUP_MEMORY] = {"memory", "--memory-max"},
	[SBX_CGROUP_PIDS] = {"processes", "--pids-max"},
	[SBX_CGROUP_CPU] = {"CPU", "--cpu-max"},
};

const char *sbx_cgroup_resource_name(enum sbx_cgroup_resource resource)
{
	return words[resource].name;
}

static int read_places(struct sbx_cgroup_place ret[static SBX_CGROUP_PLACES_MAX], size_t *ret_n,
	struct sbx_err *err)
{
	SBX_BUF struct sbx_buf mountinfo = SBX_BUF_INIT, cgroup = SBX_BUF_INIT;
	int r = sbx_fs_read_at(AT_FDCWD, "/proc/self/mountinfo", TABLE_MAX, &mountinfo);

	if (r == 0)
		r = sbx_fs_read_at(AT_FDCWD, "/proc/self/cgroup", TABLE_MAX, &cgroup);
	if (r < 0)
		return sbx_err_set(err, -r, "read the table of mounts or control groups: %m");
	*ret_n = sbx_cgroup_places(
		mountinfo.data ? mountinfo.data : "", cgroup.data ? cgroup.data : "", ret);
	return 0;
}

/* systemd marks the groups of services with Delegate=yes by an attribute. */
static bool is_delegated(const char *path)
{
	static const char *const marks[] = {"trusted.delegate", "user.delegate"};
	char value[2];

	for (size_t i = 0; i < SBX_N_ELEMENTS(marks); i++)
		if (getxattr(path, marks[i], value, sizeof(value)) == 1 && value[0] == '1')
			return true;
	return false;
}

static const char *begin_at(const struct sbx_cgroup_place *place)
{
	return place->own[0] && is_delegated(place->own) ? place->own : place->mount_point;
}

static int group_name(int sandbox_fd, const char *sandbox_id, char ret[static SBX_CGROUP_NAME_MAX],
	struct sbx_err *err)
{
	struct stat st;

	if (fstat(sandbox_fd, &st) < 0)
		return sbx_err_set(err, errno, "stat the sandbox's directory: %m");
	(void)snprintf(ret, SBX_CGROUP_NAME_MAX, "%s@%x-%llx", sandbox_id, (unsigned int)st.st_dev,
		(unsigned long long)st.st_ino);
	return 0;
}

/* Of dir_fd: those that are empty. */
static void remove_groups(int dir_fd)
{
	SBX_CLOSE int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir)
		return;
	(void)sbx_fd_take(&fd); /* closedir() closes it */
	while ((entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			(void)unlinkat(dir_fd, entry->d_name, AT_REMOVEDIR);
	(void)closedir(dir);
}

/* What a directory of a hierarchy can hand down, as bits. */
static unsigned int available(int dir_fd, const struct sbx_cgroup_place *place)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	unsigned int found = 0;

	if (!place->unified)
		return place->controllers;
	if (sbx_fs_read_at(dir_fd, "cgroup.controllers", SBX_CGROUP_FILE_MAX, &text) < 0 ||
		!text.size)
		return 0;
	for (size_t i = 0; i < SBX_CGROUP_RESOURCES; i++)
		if (sbx_cgroup_list_has(text.data, strcspn(text.data, "\n"), ' ',
			    sbx_cgroup_controller_name((enum sbx_cgroup_resource)i)))
			found |= 1U << i;
	return found;
}

static void set_missing(struct sbx_cgroup_host *host, size_t resource, const char *why)
{
	host->resources[resource].base = -1;
	(void)snprintf(host->resources[resource].missing, sizeof(host->resources[resource].missing),
		"%.191s", why);
}

/* v2: one by one, so that a controller that cannot be had does not cost the others. */
static unsigned int hand_down(
	struct sbx_cgroup_host *host, int dir_fd, const char *path, unsigned int controllers)
{
	for (size_t i = 0; i < SBX_CGROUP_RESOURCES; i++) {
		struct sbx_err err = SBX_ERR_INIT;
		char word[16];
		int r;

		if (!(controllers & 1U << i))
			continue;
		(void)snprintf(word, sizeof(word), "+%s",
			sbx_cgroup_controller_name((enum sbx_cgroup_resource)i));
		r = sbx_cgroup_write(dir_fd, "cgroup.subtree_control", word);
		if (r == 0)
			continue;
		controllers &= ~(1U << i);
		/* cgroups(7), "no internal processes" */
		(void)sbx_err_set(&err, -r, "%s does not hand out its controller: %s", path,
			r == -EBUSY ? "processes live in that group" : strerror(-r));
		set_missing(host, i, err.message);
	}
	return controllers;
}

/* A delegated group must be free of processes itself. */
static int move_to_leaf(int dir_fd)
{
	SBX_CLOSE int leaf = -EBADF;
	int r = sbx_fs_ensure_dir(dir_fd, LEAF_NAME, 0755, &leaf);

	return r < 0 ? r : sbx_cgroup_write(leaf, "cgroup.procs", "0");
}

static int open_base(struct sbx_cgroup_host *host, const struct sbx_cgroup_place *place,
	unsigned int *ret_controllers, struct sbx_err *err)
{
	struct sbx_cgroup_base *base = &host->bases[host->n_bases];
	const char *path = begin_at(place);
	SBX_CLOSE int begin = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	SBX_CLOSE int top = -EBADF;
	unsigned int controllers;
	int r = begin < 0 ? -errno : 0;

	if (r < 0)
		return sbx_err_set(err, -r, "open control group %s: %m", path);
	controllers = available(begin, place);
	*ret_controllers = 0;
	if (!controllers)
		return 0; /* v2 of a hybrid host */
	if (path == place->own)
		r = move_to_leaf(begin);
	if (r < 0)
		return sbx_err_set(err, -r, "move into a group below %s: %m", path);
	if (place->unified)
		controllers = hand_down(host, begin, path, controllers);
	r = sbx_fs_ensure_dir(begin, TOP_NAME, 0755, &top);
	if (r == 0 && place->unified)
		controllers = hand_down(host, top, path, controllers);
	if (r == 0)
		r = sbx_fs_ensure_dir(top, host->name, 0755, &base->sandbox_fd);
	if (r < 0)
		return sbx_err_set(err, -r, "make a control group below %s: %m", path);
	remove_groups(base->sandbox_fd);
	if (place->unified)
		controllers = hand_down(host, base->sandbox_fd, path, controllers);
	base->unified = place->unified;
	(void)snprintf(base->path, sizeof(base->path), "%s", path);
	host->n_bases++;
	*ret_controllers = controllers;
	return 0;
}

static void open_place(struct sbx_cgroup_host *host, const struct sbx_cgroup_place *place)
{
	struct sbx_err err = SBX_ERR_INIT;
	unsigned int controllers = 0;
	int r = open_base(host, place, &controllers, &err);

	for (size_t i = 0; i < SBX_CGROUP_RESOURCES; i++) {
		if (host->resources[i].base >= 0)
			continue;
		if (r == 0 && controllers & 1U << i)
			host->resources[i].base = (int)host->n_bases - 1;
		else if (r < 0 && place->controllers & 1U << i)
			set_missing(host, i, err.message);
	}
}

static void try_limits(struct sbx_cgroup_host *host)
{
	for (size_t i = 0; i < SBX_CGROUP_RESOURCES; i++) {
		int base = host->resources[i].base;
		struct sbx_err err = SBX_ERR_INIT;
		SBX_CLOSE int fd = -EBADF;
		int r;

		if (base < 0)
			continue;
		r = sbx_fs_ensure_dir(host->bases[base].sandbox_fd, "trial", 0755, &fd);
		if (r < 0)
			(void)sbx_err_set(&err, -r, "make a control group below %s: %m",
				host->bases[base].path);
		else
			r = sbx_cgroup_set(fd, &host->bases[base], (enum sbx_cgroup_resource)i,
				&host->limits, &err);
		(void)unlinkat(host->bases[base].sandbox_fd, "trial", AT_REMOVEDIR);
		if (r < 0)
			set_missing(host, i, err.message);
	}
}

/* The defaults, where nothing was asked for; 0 for what cannot be had. */
static void choose_limits(struct sbx_cgroup_host *host, const struct sbx_cgroup_limits *asked)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
	uint64_t memory = pages > 0 && page_size > 0 ? (uint64_t)pages * (uint64_t)page_size : 0;

	host->limits = *asked;
	if (!asked->memory_max)
		host->limits.memory_max = memory / 100 * SBX_CGROUP_MEMORY_PERCENT;
	if (!asked->pids_max)
		host->limits.pids_max = SBX_CGROUP_PIDS_DEFAULT;
}

static int refuse(const struct sbx_cgroup_host *host, size_t i, struct sbx_err *err)
{
	return sbx_err_set(err, EOPNOTSUPP,
		"this sandbox was created with %s, but this host cannot limit %s: %s; "
		"'sbx-admin doctor' shows what there is. Start sandboxd as root where control "
		"groups can be made (systemd: Delegate=yes), or create the sandbox without %s",
		words[i].option, words[i].name, host->resources[i].missing, words[i].option);
}

static int settle(
	struct sbx_cgroup_host *host, const struct sbx_cgroup_limits *asked, struct sbx_err *err)
{
	const uint64_t wanted[SBX_CGROUP_RESOURCES] = {
		[SBX_CGROUP_MEMORY] = asked->memory_max,
		[SBX_CGROUP_PIDS] = asked->pids_max,
		[SBX_CGROUP_CPU] = asked->cpu_max,
	};
	uint64_t *const in_force[SBX_CGROUP_RESOURCES] = {
		[SBX_CGROUP_MEMORY] = &host->limits.memory_max,
		[SBX_CGROUP_PIDS] = &host->limits.pids_max,
		[SBX_CGROUP_CPU] = &host->limits.cpu_max,
	};

	for (size_t i = 0; i < SBX_CGROUP_RESOURCES; i++) {
		if (host->resources[i].base >= 0)
			continue;
		if (wanted[i])
			return refuse(host, i, err);
		*in_force[i] = 0;
	}
	return 0;
}

int sbx_cgroup_host_open(int sandbox_fd, const char *sandbox_id,
	const struct sbx_cgroup_limits *asked, struct sbx_cgroup_host **ret, struct sbx_err *err)
{
	SBX_FREE struct sbx_cgroup_place *places = calloc(SBX_CGROUP_PLACES_MAX, sizeof(*places));
	struct sbx_cgroup_host *host = calloc(1, sizeof(*host));
	size_t n = 0;
	int r = 0;

	if (!places || !host)
		r = sbx_err_set(err, ENOMEM, "find the control groups: %m");
	if (r == 0)
		r = group_name(sandbox_fd, sandbox_id, host->name, err);
	if (r == 0)
		r = read_places(places, &n, err);
	if (r == 0) {
		choose_limits(host, asked);
		for (size_t i = 0; i < SBX_CGROUP_RESOURCES; i++)
			set_missing(host, i, "no cgroup controller for it is mounted");
		for (size_t i = 0; i < n; i++)
			open_place(host, &places[i]);
		try_limits(host);
		r = settle(host, asked, err);
	}
	if (r < 0) {
		sbx_cgroup_host_free(host);
		return r;
	}
	*ret = host;
	return 0;
}

/* From the sandbox's own group upwards, as far as they are empty. Returns -EBUSY when one still has
 * processes. */
static int remove_host(const char *begin, const char *name)
{
	char path[PATH_MAX];
	SBX_CLOSE int top = -EBADF, own = -EBADF;

	(void)snprintf(path, sizeof(path), "%.*s/" TOP_NAME,
		(int)(sizeof(path) - sizeof(TOP_NAME) - 1), begin);
	top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	own = top < 0 ? -1 : openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (own >= 0)
		remove_groups(own);
	if (own >= 0 && unlinkat(top, name, AT_REMOVEDIR) < 0)
		return -errno;
	(void)rmdir(path); /* other sandboxes may still be there */
	return 0;
}

/* Processes give up their files, and with them the sandbox's lock, a moment before their group; in
 * v1 there is nothing to wait on for that. */
static void remove_host_soon(const char *begin, const char *name)
{
	const struct timespec pause = {.tv_nsec = 10 * (long)SBX_NSEC_PER_MSEC};

	for (int tries = SWEEP_TRIES; tries && remove_host(begin, name) == -EBUSY; tries--)
		(void)nanosleep(&pause, NULL); /* woken early: tried early */
}

void sbx_cgroup_host_free(struct sbx_cgroup_host *host)
{
	if (!host)
		return;
	for (size_t i = 0; i < host->n_bases; i++) {
		sbx_fd_close(&host->bases[i].sandbox_fd);
		remove_host_soon(host->bases[i].path, host->name);
	}
	free(host);
}

void sbx_cgroup_sweep(int sandbox_fd, const char *sandbox_id)
{
	SBX_FREE struct sbx_cgroup_place *places = calloc(SBX_CGROUP_PLACES_MAX, sizeof(*places));
	char name[SBX_CGROUP_NAME_MAX];
	size_t n;

	if (!places || group_name(sandbox_fd, sandbox_id, name, NULL) < 0 ||
		read_places(places, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		remove_host_soon(begin_at(&places[i]), name);
}

const struct sbx_cgroup_limits *sbx_cgroup_host_limits(const struct sbx_cgroup_host *host)
{
	return &host->limits;
}

const char *sbx_cgroup_host_missing(
	const struct sbx_cgroup_host *host, enum sbx_cgroup_resource resource)
{
	return host->resources[resource].base < 0 ? host->resources[resource].missing : NULL;
}

int sbx_cgroup_host_describe(const struct sbx_cgroup_host *host, struct sbx_buf *ret)
{
	const char *between = "";
	int r = 0;

	for (size_t i = 0; i < SBX_CGROUP_RESOURCES && r == 0; i++) {
		int base = host->resources[i].base;

		if (base < 0)
			continue;
		r = sbx_buf_printf(ret, "%s%s by cgroup v%d at %s", between, words[i].name,
			host->bases[base].unified ? 2 : 1, host->bases[base].path);
		between = ", ";
	}
	return r;
}
