/* SPDX-License-Identifier: MIT */
/* What a command's result says in plain words about limits and accidents. */
#include <string.h>

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
