/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "sbx/network.h"

int sbx_network_parse(const char *word, enum sbx_network *ret)
{
	static const char *const words[] = {
		[SBX_NETWORK_NONE] = "none",
		[SBX_NETWORK_HOST] = "host",
		[SBX_NETWORK_BRIDGE] = "bridge",
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(words); i++)
		if (word && !strcmp(words[i], word)) {
			*ret = (enum sbx_network)i;
			return 0;
		}
	return -EINVAL;
}

/* Digits only, from min to max; moves *text behind them. */
static bool parse_number(const char **text, unsigned int min, unsigned int max, unsigned int *ret)
{
	const char *p = *text;
	unsigned int n = 0;

	for (; isdigit((unsigned char)*p) && p - *text < 5; p++)
		n = n * 10 + (unsigned int)(*p - '0');
	if (p == *text || isdigit((unsigned char)*p) || n < min || n > max)
		return false;
	*text = p;
	*ret = n;
	return true;
}

/* A dotted quad; moves *text behind it. */
static bool parse_address(const char **text, uint32_t *ret)
{
	size_t size = strspn(*text, "0123456789.");
	char copy[INET_ADDRSTRLEN];
	struct in_addr address;

	if (size >= sizeof(copy))
		return false;
	(void)snprintf(copy, sizeof(copy), "%.*s", (int)size, *text);
	if (inet_pton(AF_INET, copy, &address) != 1)
		return false;
	*text += size;
	*ret = ntohl(address.s_addr);
	return true;
}

int sbx_allow_parse(const char *text, struct sbx_allow *ret, struct sbx_err *err)
{
	unsigned int prefix = 32, port = 0;
	const char *at = text;
	uint32_t address = 0;

	if (!parse_address(&at, &address))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"'%.64s' is no IPv4 address or network: expected ADDRESS[/BITS][:PORT], "
			"such as 10.1.2.3:5432 or 10.1.2.0/24%s",
			text, strchr(text, '[') || strstr(text, "::") ? "; IPv6 is closed" : "");
	if (*at == '/' && (at++, !parse_number(&at, 0, 32, &prefix)))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"'%.64s': behind '/' stands a number of bits from 0 to 32", text);
	if (*at == ':' && (at++, !parse_number(&at, 1, UINT16_MAX, &port)))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"'%.64s': behind ':' stands a port from 1 to 65535", text);
	if (*at)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"'%.64s': '%.16s' is one thing too many; expected ADDRESS[/BITS][:PORT]",
			text, at);
	if (prefix < 32 && address & (UINT32_MAX >> prefix))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"'%.64s' has bits set behind its /%u: name the network itself, or one "
			"address without '/'",
			text, prefix);
	*ret = (struct sbx_allow){address, (uint8_t)prefix, (uint16_t)port};
	return 0;
}
