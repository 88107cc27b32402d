/* SPDX-License-Identifier: MIT */
/* sandbox-mcp: an MCP server on stdin and stdout, a client of the sandboxes' daemons. */
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "server.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0" /* compiled by hand, without configure */
#endif

enum exit_code { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const char usage[] =
	"Usage: sandbox-mcp --set SET [--text-content]\n"
	"\n"
	"Serves the Model Context Protocol on stdin and stdout: one JSON-RPC message a line, for\n"
	"clients of the revisions 2024-11-05 to 2025-11-25 and 2026-07-28. Tool calls go to the\n"
	"daemon of the sandbox that they name, which is started when it does not run.\n"
	"\n"
	"  --set SET        which tools to serve; SET is runtime: exec_command,\n"
	"                   write_command_stdin, read_command_lines, file_read, file_write,\n"
	"                   file_edit, file_blame\n"
	"  --text-content   put results into content too, as JSON text, for clients that do not\n"
	"                   read structuredContent\n"
	"  --help           show this\n"
	"  --version        show the version\n"
	"\n"
	"Environment: SBX_STATE_DIR, where sandboxes are kept (default /var/lib/sbx for root, "
	"else\n"
	"$XDG_STATE_HOME/sbx).\n"
	"\n"
	"Exit: 0 when stdin has ended or SIGTERM, SIGINT or SIGHUP has come and all is answered,\n"
	"1 when that was not possible, 2 for wrong usage.\n";

enum option_code { OPTION_SET = 256, OPTION_TEXT, OPTION_HELP, OPTION_VERSION };

static const struct option long_options[] = {
	{"set", required_argument, NULL, OPTION_SET},
	{"text-content", no_argument, NULL, OPTION_TEXT},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

/* For people. stderr may be a pipe that nobody reads: what would block is not said. */
static void complain(const char *text, const char *detail)
{
	struct pollfd stderr_poll = {.fd = STDERR_FILENO, .events = POLLOUT};

	if (poll(&stderr_poll, 1, 0) == 1 && (stderr_poll.revents & POLLOUT))
		(void)dprintf(STDERR_FILENO, "sandbox-mcp: %s%s\n", text, detail);
}

static int misused(const char *text, const char *detail)
{
	complain(text, detail);
	complain("see sandbox-mcp --help", "");
	return EXIT_USAGE;
}

static int show(const char *text)
{
	return fputs(text, stdout) < 0 || fflush(stdout) == EOF ? EXIT_FAILED : EXIT_OK;
}

static int serve(const struct mcp_options *options)
{
	struct sbx_err err = SBX_ERR_INIT;

	if (mcp_server_run(options, &err) == 0)
		return EXIT_OK;
	complain(err.message, "");
	return EXIT_FAILED;
}

int main(int argc, char **argv)
{
	struct mcp_options options = {0};
	const char *set = NULL;
	int code;

	while ((code = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (code) {
		case OPTION_SET:
			set = optarg;
			break;
		case OPTION_TEXT:
			options.text_content = true;
			break;
		case OPTION_HELP:
			return show(usage);
		case OPTION_VERSION:
			return show("sandbox-mcp " PACKAGE_VERSION "\n");
		default:
			return misused("wrong option", ""); /* getopt_long(3) has named it */
		}
	}
	if (optind < argc)
		return misused("unexpected argument: ", argv[optind]);
	if (!set)
		return misused("--set is missing; the set is: runtime", "");
	if (strcmp(set, "runtime") != 0)
		return misused("unknown set (known: runtime): ", set);
	return serve(&options);
}
