/* SPDX-License-Identifier: MIT */
#include "template.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "mount.h"
#include "rootfs.h"
#include "sbx/fs.h"

#define ROOT_BYTES   (1u << 20) /* the template's root and its /dev hold directories and links */
#define HOSTS_MAX    (1u << 20) /* bytes of /etc/hosts that are looked through */
#define HOSTS        "/etc/hosts"
#define RESOLVER     "/etc/resolv.conf"
#define RESOLVER_MAX (64u << 10)

#define SHARED_ATTRIBUTES (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define DEV_ATTRIBUTES    (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)

/* What a session sees of the host with rootfs "host". Links stay links (merged /usr). */
static const char *const host_entries[] = {
	"usr",
	"etc",
	"opt",
	"bin",
	"sbin",
	"lib",
	"lib32",
	"lib64",
	"libx32",
};

static const struct {
	const char *path;
	mode_t mode;
} directories[] = {
	{"proc", 0555},
	{"sys", 0555}, /* stays empty: nothing there is needed, much of it can be written to */
	{"dev", 0755},
	{"tmp", 01777},
	{"run", 0755},
	{"root", 0700},
	{"home", 0755},
	{"mnt", 0755},
	{"srv", 0755},
	{"var", 0755},
	{"var/tmp", 01777},
	{"var/cache", 0755},
	{"var/lib", 0755},
	{"var/log", 0755},
};

static const struct link {
	const char *path, *target;
} links[] = {
	{"var/run", "/run"},
	{"var/lock", "/run/lock"},
};

static const struct {
	const char *name;
	unsigned int major, minor;
} devices[] = {
	{"null", 1, 3},
	{"zero", 1, 5},
	{"full", 1, 7},
	{"random", 1, 8},
	{"urandom", 1, 9},
	{"tty", 5, 0},
};

static const struct link device_links[] = {
	{"fd", "/proc/self/fd"},
	{"stdin", "/proc/self/fd/0"},
	{"stdout", "/proc/self/fd/1"},
	{"stderr", "/proc/self/fd/2"},
	{"ptmx", "pts/ptmx"},
};

static int make_links(int root, const struct link *table, size_t n, uid_t id, struct sbx_err *err)
{
	for (size_t i = 0; i < n; i++)
		if (symlinkat(table[i].target, root, table[i].path) < 0 ||
			fchownat(root, table[i].path, id, id, AT_SYMLINK_NOFOLLOW) < 0)
			return sbx_err_set(err, errno, "link %s: %m", table[i].path);
	return 0;
}

/* Modes are given exactly: the spawner's umask is 0. */
static int make_directory(int root, const char *path, mode_t mode, uid_t id, struct sbx_err *err)
{
	if (mkdirat(root, path, mode) < 0 || fchownat(root, path, id, id, AT_SYMLINK_NOFOLLOW) < 0)
		return sbx_err_set(err, errno, "make directory %s: %m", path);
	return 0;
}

/* Of a root file system of its own only /dev and the empty /sys are shared (slot_ns.c). */
static int make_stage(int root, const struct sbx_spawner_config *config, struct sbx_err *err)
{
	static const char *const names[] = {"dev", "sys", "proc", SBX_ROOTFS_STAGE};
	int r = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(names) && r >= 0; i++)
		r = make_directory(root, names[i], 0755, config->id_base, err);
	return r;
}

static int make_skeleton(int root, const struct sbx_spawner_config *config, struct sbx_err *err)
{
	int r;

	for (size_t i = 0; i < SBX_N_ELEMENTS(directories); i++) {
		r = make_directory(
			root, directories[i].path, directories[i].mode, config->id_base, err);
		if (r < 0)
			return r;
	}
	r = make_links(root, links, SBX_N_ELEMENTS(links), config->id_base, err);
	if (r < 0)
		return r;
	return sbx_mount_make_dirs(root, config->root_at, err);
}

/*
 * /dev as a file system of its own: read-only, or its directories would be a channel between the
 * sessions that share it. Device nodes can be written to all the same.
 */
static int make_dev(const struct sbx_spawner_config *config, int *ret_tree, struct sbx_err *err)
{
	uid_t id = config->id_base;
	SBX_CLOSE int dev = -EBADF;
	int r;

	r = sbx_mount_tmpfs(ROOT_BYTES, 0755, id, MOUNT_ATTR_NOSUID, &dev, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < SBX_N_ELEMENTS(devices); i++)
		if (mknodat(dev, devices[i].name, S_IFCHR | 0666,
			    makedev(devices[i].major, devices[i].minor)) < 0 ||
			fchownat(dev, devices[i].name, id, id, AT_SYMLINK_NOFOLLOW) < 0)
			return sbx_err_set(err, errno, "make device %s: %m", devices[i].name);
	r = make_links(dev, device_links, SBX_N_ELEMENTS(device_links), id, err);
	if (r >= 0)
		r = make_directory(dev, "pts", 0755, id, err);
	if (r >= 0)
		r = make_directory(dev, "shm", 01777, id, err);
	if (r >= 0)
		r = sbx_mount_set(dev, DEV_ATTRIBUTES, -EBADF, 0, err);
	if (r < 0)
		return r;
	*ret_tree = sbx_fd_take(&dev);
	return 0;
}

/* One entry of the host's root: absent, a link to make again, or a directory to show. */
static int share_entry(int root, const char *name, uid_t id, struct sbx_err *err)
{
	SBX_CLOSE int tree = -EBADF;
	char path[32], target[PATH_MAX];
	struct stat st;
	ssize_t n;
	int r;

	(void)snprintf(path, sizeof(path), "/%s", name);
	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : sbx_err_set(err, errno, "stat %s: %m", path);
	if (S_ISLNK(st.st_mode)) {
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0)
			return sbx_err_set(err, errno, "read link %s: %m", path);
		target[n] = '\0';
		return make_links(root, &(struct link){name, target}, 1, id, err);
	}
	if (!S_ISDIR(st.st_mode))
		return 0; /* nothing that a root file system has */
	if (mkdirat(root, name, 0755) < 0)
		return sbx_err_set(err, errno, "make directory %s: %m", path);
	r = sbx_mount_clone(AT_FDCWD, path, SBX_MOUNT_RECURSIVE, &tree, err);
	if (r < 0)
		return r;
	r = sbx_mount_set(tree, SHARED_ATTRIBUTES, -EBADF, SBX_MOUNT_RECURSIVE, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "%s", path);
	return sbx_mount_attach(tree, root, name, err);
}

/*
 * Covers a file of /etc, or a symbolic link, by one with this text. Written in a tmpfs that is
 * attached to /run only for as long as the file is cloned out of it.
 */
static int cover_file(
	const char *path, const char *text, size_t size, uid_t id, struct sbx_err *err)
{
	SBX_CLOSE int scratch = -EBADF, tree = -EBADF;
	int r;

	if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* a read-only /etc has no place for it */
	r = sbx_mount_tmpfs(
		ROOT_BYTES, 0755, id, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &scratch, err);
	if (r < 0)
		return r;
	r = sbx_fs_write_at(scratch, "file", 0644, text, size, 0);
	if (r < 0)
		return sbx_err_set(err, -r, "write %s: %m", path);
	r = sbx_mount_attach(scratch, AT_FDCWD, "/run", err);
	if (r < 0)
		return r;
	r = sbx_mount_clone(AT_FDCWD, "/run/file", 0, &tree, err);
	if (umount2("/run", MNT_DETACH) < 0 && r >= 0)
		r = sbx_err_set(err, errno, "detach the scratch file system: %m");
	if (r >= 0)
		r = sbx_mount_set(tree, SHARED_ATTRIBUTES, -EBADF, 0, err);
	if (r >= 0)
		r = sbx_mount_attach(tree, AT_FDCWD, path, err);
	return r;
}

/* A hosts file that names this machine and nothing else; with the host's network the host's own,
 * unless that does not even name the loopback. */
static int read_hosts(const struct sbx_spawner_config *config, struct sbx_buf *ret, bool *ret_own,
	struct sbx_err *err)
{
	int r = 0;

	*ret_own = false;
	if (config->network == SBX_NETWORK_HOST &&
		sbx_fs_read_at(AT_FDCWD, HOSTS, HOSTS_MAX, ret) == 0 && ret->data &&
		strstr(ret->data, "localhost"))
		return 0;
	*ret_own = true;
	sbx_buf_clear(ret);
	r = sbx_buf_printf(ret,
		"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\t%s\n",
		config->sandbox_id);
	return r < 0 ? sbx_err_set(err, -r, "write " HOSTS ": %m") : 0;
}

/*
 * On many hosts /etc/resolv.conf is a link into /run, which sessions do not share: where they have
 * the host's network its content takes the link's place. While the host's root is still ours to
 * read. On the bridge they have one of their own.
 */
static int read_resolver(
	const struct sbx_spawner_config *config, struct sbx_buf *ret, struct sbx_err *err)
{
	SBX_CLOSE int fd = -EBADF;
	char target[PATH_MAX];
	int r;

	if (config->resolver) {
		r = sbx_buf_append_string(ret, config->resolver->text);
		return r < 0 ? sbx_err_set(err, -r, "resolv.conf: %m") : 0;
	}
	if (config->network == SBX_NETWORK_NONE)
		return 0;
	/* EINVAL: a file, which is shared with the rest of /etc */
	if (config->rootfs_fd < 0 && readlink(RESOLVER, target, sizeof(target)) < 0)
		return 0;
	fd = open(RESOLVER, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || sbx_fs_read_fd(fd, RESOLVER_MAX, ret) < 0)
		sbx_buf_clear(ret); /* the host itself cannot read it: then it has no resolver */
	return 0;
}

static int fill_from_host(int root, uid_t id, struct sbx_err *err)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(host_entries); i++) {
		int r = share_entry(root, host_entries[i], id, err);

		if (r < 0)
			return r;
	}
	return 0;
}

static int cover_files(const struct sbx_spawner_config *config, const struct sbx_buf *hosts,
	bool own_hosts, const struct sbx_buf *resolver, struct sbx_err *err)
{
	int r = 0;

	if (own_hosts)
		r = cover_file(HOSTS, hosts->data, hosts->size, config->id_base, err);
	if (r >= 0 && resolver->size)
		r = cover_file(RESOLVER, resolver->data, resolver->size, config->id_base, err);
	return r;
}

/* A workspace inside what sessions share read-only, or over what they need, cannot be shown. */
static int check_root_at(const char *root_at, struct sbx_err *err)
{
	static const char *const fixed[] = {"proc", "sys", "dev"};
	size_t n = strcspn(root_at + 1, "/");

	if (root_at[0] != '/' || n == 0 || strstr(root_at, "/../"))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"workspace root %s: must be an absolute path below /", root_at);
	for (size_t i = 0; i < SBX_N_ELEMENTS(host_entries) + SBX_N_ELEMENTS(fixed); i++) {
		const char *name = i < SBX_N_ELEMENTS(fixed)
					   ? fixed[i]
					   : host_entries[i - SBX_N_ELEMENTS(fixed)];

		if (strlen(name) == n && !strncmp(root_at + 1, name, n))
			return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
				"workspace root %s: /%s belongs to the system; choose another "
				"place",
				root_at, name);
	}
	return 0;
}

int sbx_template_build(
	const struct sbx_spawner_config *config, int rootfs, int *ret_places, struct sbx_err *err)
{
	SBX_CLOSE int root = -EBADF, dev = -EBADF, places = -EBADF;
	SBX_BUF struct sbx_buf hosts = SBX_BUF_INIT, resolver = SBX_BUF_INIT;
	bool from_host = rootfs < 0, own_hosts = false;
	int r;

	r = check_root_at(config->root_at, err);
	if (r >= 0)
		r = read_hosts(config, &hosts, &own_hosts, err);
	if (r < 0)
		return r;
	r = read_resolver(config, &resolver, err);
	if (r < 0)
		return r;
	r = sbx_mount_tmpfs(ROOT_BYTES, 0755, config->id_base, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		&root, err);
	if (r >= 0)
		r = from_host ? make_skeleton(root, config, err) : make_stage(root, config, err);
	if (r >= 0)
		r = make_dev(config, &dev, err);
	if (r >= 0 && !from_host)
		r = sbx_rootfs_places(config, rootfs, &hosts, &resolver, &places, err);
	if (r >= 0)
		r = sbx_mount_attach(root, AT_FDCWD, SBX_MOUNT_STAGE, err);
	if (r >= 0 && from_host)
		r = fill_from_host(root, config->id_base, err);
	if (r >= 0)
		r = sbx_mount_attach(dev, root, "dev", err);
	if (r >= 0)
		r = sbx_mount_enter_root(root, err);
	if (r >= 0 && from_host)
		r = cover_files(config, &hosts, own_hosts, &resolver, err);
	if (r >= 0)
		r = sbx_mount_set(root, SHARED_ATTRIBUTES, -EBADF, 0, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "the sessions' root file system");
	*ret_places = sbx_fd_take(&places);
	return 0;
}
