/* SPDX-License-Identifier: MIT */
#include "netlink.h"

#include <assert.h>
#include <libmnl/libmnl.h>
#include <sys/socket.h>

/* A part of a dump is at most 32 KiB (netlink_dump() in the kernel), any other answer shorter. */
#define ANSWER_MAX (32u << 10)

struct sbx_netlink {
	struct mnl_socket *socket;
	uint32_t next_seq;
	_Alignas(8) char answer[ANSWER_MAX];
};

int sbx_netlink_open(int bus, struct sbx_netlink **ret, struct sbx_err *err)
{
	SBX_NETLINK struct sbx_netlink *nl = calloc(1, sizeof(*nl));

	if (!nl)
		return sbx_err_set(err, ENOMEM, "open a netlink socket: %m");
	nl->socket = mnl_socket_open2(bus, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (!nl->socket || mnl_socket_bind(nl->socket, 0, MNL_SOCKET_AUTOPID) < 0)
		return sbx_err_set(err, errno, "open a netlink socket (%s): %m",
			bus == NETLINK_ROUTE ? "route" : "netfilter");
	*ret = sbx_take(&nl);
	return 0;
}

void sbx_netlink_close(struct sbx_netlink *nl)
{
	if (nl && nl->socket)
		(void)mnl_socket_close(nl->socket); /* nothing is buffered in it */
	free(nl);
}

void *sbx_netlink_begin(
	struct sbx_netlink_message *m, uint16_t type, uint16_t flags, size_t family_size)
{
	m->header = mnl_nlmsg_put_header(m->data);
	m->header->nlmsg_type = type;
	m->header->nlmsg_flags = NLM_F_REQUEST | flags;
	return mnl_nlmsg_put_extra_header(m->header, family_size);
}

void sbx_netlink_put(
	struct sbx_netlink_message *m, uint16_t attribute, const void *data, size_t size)
{
	bool fits = mnl_attr_put_check(m->header, sizeof(m->data), attribute, size, data);

	assert(fits);
	(void)fits;
}

void sbx_netlink_put_u8(struct sbx_netlink_message *m, uint16_t attribute, uint8_t value)
{
	sbx_netlink_put(m, attribute, &value, sizeof(value));
}

void sbx_netlink_put_u32(struct sbx_netlink_message *m, uint16_t attribute, uint32_t value)
{
	sbx_netlink_put(m, attribute, &value, sizeof(value));
}

void sbx_netlink_put_string(struct sbx_netlink_message *m, uint16_t attribute, const char *value)
{
	bool fits = mnl_attr_put_strz_check(m->header, sizeof(m->data), attribute, value);

	assert(fits);
	(void)fits;
}

void *sbx_netlink_put_room(struct sbx_netlink_message *m, size_t size)
{
	assert(m->header->nlmsg_len + MNL_ALIGN(size) <= sizeof(m->data));
	return mnl_nlmsg_put_extra_header(m->header, size);
}

struct nlattr *sbx_netlink_nest(struct sbx_netlink_message *m, uint16_t attribute)
{
	struct nlattr *nest = mnl_attr_nest_start_check(m->header, sizeof(m->data), attribute);

	assert(nest);
	return nest;
}

void sbx_netlink_nest_end(struct sbx_netlink_message *m, struct nlattr *nest)
{
	mnl_attr_nest_end(m->header, nest);
}

/* One message of the kernel. */
static int take(const struct nlmsghdr *message, sbx_netlink_fn found, void *data)
{
	const struct nlmsgerr *error = mnl_nlmsg_get_payload(message);

	switch (message->nlmsg_type) {
	case NLMSG_ERROR:
		return mnl_nlmsg_get_payload_len(message) < sizeof(*error) ? -EBADMSG
									   : error->error;
	case NLMSG_DONE:
	case NLMSG_NOOP:
		return 0;
	case NLMSG_OVERRUN:
		return -ENOBUFS;
	default:
		return found ? found(message, data) : 0;
	}
}

/* All that the kernel has to say. A dump is made part by part, as they are read. */
static int read_answers(struct sbx_netlink *nl, sbx_netlink_fn found, void *data)
{
	int first = 0;

	for (;;) {
		ssize_t n = mnl_socket_recvfrom(nl->socket, nl->answer, sizeof(nl->answer));
		const struct nlmsghdr *message = (const struct nlmsghdr *)nl->answer;
		int left = (int)n;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? first : -errno;
		for (; mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left)) {
			int r = take(message, found, data);

			if (r < 0 && first == 0)
				first = r;
		}
	}
}

int sbx_netlink_send(
	struct sbx_netlink *nl, const void *messages, size_t size, sbx_netlink_fn found, void *data)
{
	ssize_t n = mnl_socket_sendto(nl->socket, messages, size);
	int r = n < 0 ? -errno : 0;
	int answered = read_answers(nl, found, data);

	return r < 0 ? r : answered;
}

int sbx_netlink_ask(
	struct sbx_netlink *nl, struct sbx_netlink_message *m, sbx_netlink_fn found, void *data)
{
	m->header->nlmsg_seq = ++nl->next_seq;
	return sbx_netlink_send(nl, m->header, m->header->nlmsg_len, found, data);
}

struct table {
	const struct nlattr **attributes;
	size_t n;
};

static int enter(const struct nlattr *attribute, void *data)
{
	const struct table *table = data;
	uint16_t type = mnl_attr_get_type(attribute);

	if (type < table->n)
		table->attributes[type] = attribute;
	return MNL_CB_OK;
}

void sbx_netlink_parse(const struct nlmsghdr *message, size_t family_size,
	const struct nlattr *attributes[], size_t n)
{
	struct table table = {attributes, n};

	for (size_t i = 0; i < n; i++)
		attributes[i] = NULL;
	(void)mnl_attr_parse(message, (unsigned int)family_size, enter, &table); /* enter() is OK */
}

void sbx_netlink_parse_nested(
	const struct nlattr *nest, const struct nlattr *attributes[], size_t n)
{
	struct table table = {attributes, n};

	for (size_t i = 0; i < n; i++)
		attributes[i] = NULL;
	if (nest)
		(void)mnl_attr_parse_nested(nest, enter, &table); /* enter() is OK */
}

uint32_t sbx_netlink_u32(const struct nlattr *attribute)
{
	if (!attribute || mnl_attr_get_payload_len(attribute) != sizeof(uint32_t))
		return 0;
	return mnl_attr_get_u32(attribute);
}

const char *sbx_netlink_string(const struct nlattr *attribute)
{
	if (!attribute || mnl_attr_validate(attribute, MNL_TYPE_NUL_STRING) < 0)
		return "";
	return mnl_attr_get_str(attribute);
}
