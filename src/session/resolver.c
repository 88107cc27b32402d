/* SPDX-License-Identifier: MIT */
/* resolv.conf(5) for sessions on the bridge. Read by sandboxd: the spawner parses no text. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>

#include "sbx/buf.h"
#include "sbx/fs.h"
#include "sbx/network.h"

#define RESOLV_CONF_MAX (64u << 10)

/* In this order, the first with a server that can be reached: what programs of the host read, and
 * where systemd-resolved keeps the servers behind its stub on 127.0.0.53. */
static const char *const places[] = {
	"etc/resolv.conf",
	"run/systemd/resolve/resolv.conf",
};

static const char *const kept[] = {"search", "domain", "options"};

void sbx_resolver_done(struct sbx_resolver *resolver)
{
	sbx_free_pointer(&resolver->text);
	*resolver = (struct sbx_resolver){0};
}

/* Links are followed: on many hosts it is one. */
static int read_place(int root_fd, const char *path, struct sbx_buf *ret)
{
	SBX_CLOSE int fd = openat(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? -errno : sbx_fs_read_fd(fd, RESOLV_CONF_MAX, ret);
}

static bool is_reachable(uint32_t address)
{
	return address >> 24 != 127 && address >> 24 != 0;
}

static int add_server(struct sbx_resolver *resolver, const char *word, struct sbx_buf *text)
{
	struct in_addr address;

	if (resolver->n_servers == SBX_NAME_SERVERS_MAX ||
		inet_pton(AF_INET, word, &address) != 1 || !is_reachable(ntohl(address.s_addr)))
		return 0;
	resolver->servers[resolver->n_servers++] = ntohl(address.s_addr);
	return sbx_buf_printf(text, "nameserver %s\n", word);
}

static int take_line(struct sbx_resolver *resolver, const char *line, struct sbx_buf *text)
{
	static const char blank[] = " \t\r";
	SBX_FREE char *copy = strdup(line);
	char *rest = NULL, *word = copy ? strtok_r(copy, blank, &rest) : NULL;

	if (!copy)
		return -ENOMEM;
	if (!word || word != copy) /* a keyword stands at the beginning, or it is none */
		return 0;
	if (!strcmp(word, "nameserver")) {
		word = strtok_r(NULL, blank, &rest);
		return word ? add_server(resolver, word, text) : 0;
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(kept); i++)
		if (!strcmp(word, kept[i]))
			return sbx_buf_printf(text, "%s\n", line);
	return 0;
}

static int take_place(struct sbx_resolver *resolver, char *content, struct sbx_buf *text)
{
	char *rest = NULL;
	int r = 0;

	for (char *line = strtok_r(content, "\n", &rest); line && r == 0;
		line = strtok_r(NULL, "\n", &rest))
		r = take_line(resolver, line, text);
	return r;
}

int sbx_resolver_load(int root_fd, struct sbx_resolver *ret, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	struct sbx_resolver resolver = {.n_servers = 0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < SBX_N_ELEMENTS(places) && !resolver.n_servers; i++) {
		SBX_BUF struct sbx_buf content = SBX_BUF_INIT;

		sbx_buf_clear(&text);
		if (read_place(root_fd, places[i], &content) < 0 || !content.data)
			continue; /* the host cannot read it either */
		r = take_place(&resolver, content.data, &text);
	}
	if (r == 0 && !resolver.n_servers) {
		sbx_buf_clear(&text);
		r = sbx_buf_append_string(&text,
			"# The name servers of the host are on its loopback or have IPv6 "
			"addresses\n"
			"# only, which sessions cannot reach: names are not resolved here.\n");
	}
	if (r < 0)
		return sbx_err_set(err, -r, "read the host's resolv.conf: %m");
	resolver.text = strdup(text.data);
	if (!resolver.text)
		return sbx_err_set(err, ENOMEM, "read the host's resolv.conf: %m");
	*ret = resolver;
	return 0;
}
