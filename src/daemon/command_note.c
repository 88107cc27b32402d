/* SPDX-License-Identifier: MIT */
/* What a command's result says in plain words about limits and accidents. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "command.h"
#include "slots.h"

void command_add_note(struct command *command, const char *text)
{
	SBX_BUF struct sbx_buf notes = SBX_BUF_INIT;
	int r = 0;

	if (command->note)
		r = sbx_buf_printf(&notes, "%s\n", command->note);
	if (r == 0)
		r = sbx_buf_append_string(&notes, text);
	if (r < 0)
		abort();
	free(command->note);
	command->note = sbx_buf_take(&notes);
}

void command_count_limits(struct command *command)
{
	slot_count(command->daemon->slots, command->session->slot, &command->counts);
}

void command_note_limits(struct command *command)
{
	const struct daemon *daemon = command->daemon;
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	struct sbx_cgroup_counts now;

	slot_count(daemon->slots, command->session->slot, &now);
	if (sbx_cgroup_explain(
		    sbx_cgroup_host_limits(daemon->cgroups), &command->counts, &now, &text) < 0)
		abort();
	if (text.size)
		command_add_note(command, text.data);
}

/* A shell tells of a program that died from a signal by its own exit code. */
static bool is_from_signal(int wait_status, int sig)
{
	return WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) == sig
					: WEXITSTATUS(wait_status) == 128 + sig;
}

void command_note_filter(struct command *command, int wait_status)
{
	const struct sbx_sandbox *sandbox = &command->daemon->sandbox;
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

	if (!is_from_signal(wait_status, SIGSYS))
		return;
	if (sbx_buf_printf(&text,
		    "system call filter: a program was killed (SIGSYS) for a call that %s does not "
		    "permit; 'strace -f' shows which call",
		    sandbox->seccomp_profile ? sandbox->seccomp_profile
					     : "a filter of its own or the sandbox's policy") < 0)
		abort();
	command_add_note(command, text.data);
}

void command_note_file_size(struct command *command, int wait_status)
{
	uint64_t disk_max = command->daemon->sandbox.disk_max;
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

	if (!disk_max || !is_from_signal(wait_status, SIGXFSZ))
		return;
	if (sbx_buf_printf(&text,
		    "disk limit hit: a program was ended (SIGXFSZ) since one file alone would have "
		    "been larger than %.1f MiB (disk_max); write less or use a sandbox created "
		    "with "
		    "a larger --disk-max",
		    (double)disk_max / (1 << 20)) < 0)
		abort();
	command_add_note(command, text.data);
}

struct json_object *command_notes(const struct command *command)
{
	struct json_object *notes = json_object_new_array();
	const char *line = command->note;

	while (notes && line) {
		size_t size = strcspn(line, "\n");
		struct json_object *note = json_object_new_string_len(line, (int)size);

		if (!note || json_object_array_add(notes, note) < 0)
			abort();
		line += size;
		line = *line ? line + 1 : NULL;
	}
	if (!notes)
		abort();
	return notes;
}
