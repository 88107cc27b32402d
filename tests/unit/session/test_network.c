/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sbx/fs.h"
#include "sbx/network.h"

Test(allow, addresses_networks_and_ports_are_understood)
{
	static const struct {
		const char *text;
		struct sbx_allow allow;
	} cases[] = {
		{"10.1.2.3", {0x0a010203, 32, 0}},
		{"10.1.2.3:5432", {0x0a010203, 32, 5432}},
		{"10.1.2.0/24", {0x0a010200, 24, 0}},
		{"192.168.0.0/16:65535", {0xc0a80000, 16, 65535}},
		{"255.255.255.255/32:1", {0xffffffff, 32, 1}},
		{"0.0.0.0/0", {0, 0, 0}},
		{"128.0.0.0/1", {0x80000000, 1, 0}},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		struct sbx_err err = SBX_ERR_INIT;
		struct sbx_allow got = {0};

		cr_expect_eq(sbx_allow_parse(cases[i].text, &got, &err), 0, "%s: %s", cases[i].text,
			err.message);
		cr_expect_eq(got.address, cases[i].allow.address, "%s", cases[i].text);
		cr_expect_eq(got.prefix, cases[i].allow.prefix, "%s", cases[i].text);
		cr_expect_eq(got.port, cases[i].allow.port, "%s", cases[i].text);
	}
}

Test(allow, anything_else_is_refused_by_name)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"", "'' is no IPv4 address"},
		{"db.example", "no IPv4 address"},
		{"10.1.2", "no IPv4 address"},
		{"10.1.2.3.4", "no IPv4 address"},
		{"010.1.2.3", "no IPv4 address"},
		{"1111111111111111111111111.1", "no IPv4 address"},
		{"fd00::1", "IPv6 is closed"},
		{"[fd00::1]:80", "IPv6 is closed"},
		{"10.1.2.3/33", "bits from 0 to 32"},
		{"10.1.2.3/", "bits from 0 to 32"},
		{"10.1.2.3/-1", "bits from 0 to 32"},
		{"10.1.2.3/24", "bits set behind its /24"},
		{"10.1.2.3/0", "bits set behind its /0"},
		{"10.1.2.3:", "a port from 1 to 65535"},
		{"10.1.2.3:0", "a port from 1 to 65535"},
		{"10.1.2.3:65536", "a port from 1 to 65535"},
		{"10.1.2.3:655360", "a port from 1 to 65535"},
		{"10.1.2.3:http", "a port from 1 to 65535"},
		{"10.1.2.3:80x", "'x' is one thing too many"},
		{"10.1.2.3:80/24", "'/24' is one thing too many"},
		{"10.1.2.3 ", "' ' is one thing too many"},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		struct sbx_err err = SBX_ERR_INIT;
		struct sbx_allow got;

		cr_expect_eq(
			sbx_allow_parse(cases[i].text, &got, &err), -EINVAL, "%s", cases[i].text);
		cr_expect_eq(err.kind, SBX_KIND_INVALID, "%s", cases[i].text);
		cr_expect_not_null(strstr(err.message, cases[i].message), "%s: %s", cases[i].text,
			err.message);
	}
}

/* A root with these two files (NULL: absent). */
struct scene {
	const char *etc, *resolved;
	const char *text; /* what sessions get; NULL: a comment only */
	size_t n;
	uint32_t servers[SBX_NAME_SERVERS_MAX];
};

static const struct scene scenes[] = {
	{"nameserver 10.0.0.53\n", NULL, "nameserver 10.0.0.53\n", 1, {0x0a000035}},
	{"# by hand\nsearch corp.example\nnameserver  9.9.9.9 \noptions edns0\nsortlist x\n", NULL,
		"search corp.example\nnameserver 9.9.9.9\noptions edns0\n", 1, {0x09090909}},
	/* the stub of systemd-resolved: those behind it */
	{"nameserver 127.0.0.53\nsearch stub\n", "nameserver 192.168.1.1\nsearch lan\n",
		"nameserver 192.168.1.1\nsearch lan\n", 1, {0xc0a80101}},
	/* what is on the loopback or IPv6 is left out */
	{"nameserver 127.0.0.1\nnameserver fd00::1\nnameserver 1.1.1.1\n", NULL,
		"nameserver 1.1.1.1\n", 1, {0x01010101}},
	/* no more than resolvers ask */
	{"nameserver 1.0.0.1\nnameserver 1.0.0.2\nnameserver 1.0.0.3\nnameserver 1.0.0.4\n", NULL,
		"nameserver 1.0.0.1\nnameserver 1.0.0.2\nnameserver 1.0.0.3\n", 3,
		{0x01000001, 0x01000002, 0x01000003}},
	{"nameserver 127.0.0.1\n", NULL, NULL, 0, {0}},
	{"nameserver\n nameserver 1.1.1.1\n;nameserver 1.1.1.1\n", NULL, NULL, 0, {0}},
	{"", NULL, NULL, 0, {0}},
	{NULL, NULL, NULL, 0, {0}},
};

static void put_file(int root_fd, const char *path, const char *content)
{
	char copy[64];

	(void)snprintf(copy, sizeof(copy), "%s", path);
	for (char *slash = strchr(copy, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdirat(root_fd, copy, 0755); /* there already: fine */
		*slash = '/';
	}
	if (content)
		cr_assert_eq(sbx_fs_write_at(root_fd, path, 0644, content, strlen(content), 0), 0);
}

static void check_scene(const struct scene *scene)
{
	SBX_CLEANUP(sbx_resolver_done) struct sbx_resolver resolver = {.n_servers = 0};
	char dir[] = "/tmp/sbx-resolver-XXXXXX";
	struct sbx_err err = SBX_ERR_INIT;
	SBX_CLOSE int root_fd = -EBADF;

	cr_assert_not_null(mkdtemp(dir));
	root_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	put_file(root_fd, "etc/resolv.conf", scene->etc);
	put_file(root_fd, "run/systemd/resolve/resolv.conf", scene->resolved);
	cr_expect_eq(sbx_resolver_load(root_fd, &resolver, &err), 0, "%s", err.message);
	cr_assert_eq(sbx_fs_remove_tree(AT_FDCWD, dir), 0);
	cr_assert_not_null(resolver.text);
	if (scene->text)
		cr_expect_str_eq(resolver.text, scene->text, "%s", scene->etc);
	else
		cr_expect_eq(resolver.text[0], '#', "%s", resolver.text);
	cr_expect_eq(resolver.n_servers, scene->n, "%s", scene->etc);
	for (size_t i = 0; i < scene->n; i++)
		cr_expect_eq(resolver.servers[i], scene->servers[i]);
}

Test(resolver, sessions_ask_the_servers_of_the_host_that_they_can_reach)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(scenes); i++)
		check_scene(&scenes[i]);
}
