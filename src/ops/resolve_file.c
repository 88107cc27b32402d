/* SPDX-License-Identifier: MIT */
/* Planning for files, links and FIFOs: content and metadata, each three-way. */
#include <fcntl.h>
#include <stdio.h>

#include "content.h"
#include "resolve_internal.h"
#include "sbx/fs.h"
#include "sbx/lines.h"
#include "sbx/merge.h"

void sbx_stage_name(uint32_t index, char ret[static SBX_STAGE_NAME_SIZE])
{
	(void)snprintf(ret, SBX_STAGE_NAME_SIZE, "%u", index); /* fits */
}

static int drop(struct sbx_plan *plan, uint32_t index)
{
	sbx_changeset_act(plan->set, index, SBX_ENTRY_DROP);
	return 0;
}

/* Only a conflict when there is more to lose than an mtime. */
static int plan_deleted_there(struct sbx_plan *plan, uint32_t index, const struct sbx_sides *sides)
{
	const struct sbx_entry *entry = &plan->set->entries[index];

	if (!(entry->flags & (SBX_ENTRY_CONTENT | SBX_ENTRY_META)))
		return drop(plan, index);
	if (entry->change == SBX_CHANGE_REPLACE && S_ISDIR(sides->base.st.st_mode))
		return 0; /* both removed the directory; ours made a file */
	return sbx_plan_conflict(
		plan, sbx_entry_name(plan->set, index), SBX_CONFLICT_MODIFY_DELETE, sides);
}

/* Our file stands where the base had a directory, or the head has one. */
static int plan_against_dir(struct sbx_plan *plan, uint32_t index, const struct sbx_sides *sides)
{
	const struct sbx_entry *entry = &plan->set->entries[index];
	const char *name = sbx_entry_name(plan->set, index);

	if (sides->in_base && S_ISDIR(sides->base.st.st_mode)) {
		int r = sbx_plan_foreign(plan, name, SBX_CONFLICT_DELETE_MODIFY);

		return r < 0 ? r : 0;
	}
	if (!(entry->flags & (SBX_ENTRY_CONTENT | SBX_ENTRY_META)))
		return drop(plan, index);
	return sbx_plan_conflict(plan, name, SBX_CONFLICT_TYPE, sides);
}

static int plan_both_added(struct sbx_plan *plan, uint32_t index, const struct sbx_sides *sides,
	const struct sbx_place *ours)
{
	enum sbx_conflict_kind kind = SBX_CONFLICT_ADD_ADD;
	int differences = sbx_place_compare(ours, &sides->head);

	if (differences < 0)
		return differences;
	if (!(differences & ~SBX_DIFFERS_MTIME))
		return drop(plan, index);
	if (differences & SBX_DIFFERS_KIND)
		kind = SBX_CONFLICT_TYPE;
	else if (!(differences & SBX_DIFFERS_CONTENT))
		kind = SBX_CONFLICT_METADATA;
	return sbx_plan_conflict(plan, sbx_entry_name(plan->set, index), kind, sides);
}

/* Writes a merged text with its metadata into the staging directory. */
static int stage_text(struct sbx_plan *plan, uint32_t index, const struct sbx_buf *text,
	const struct sbx_meta *meta)
{
	int stage_fd = plan->resolve->stage_fd, r;
	char name[SBX_STAGE_NAME_SIZE];
	SBX_CLOSE int fd = -EBADF;

	sbx_stage_name(index, name);
	fd = openat(stage_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = sbx_fs_write_all(fd, text->data, text->size);
	if (r == 0)
		r = sbx_meta_apply(stage_fd, name, meta);
	if (r == 0)
		sbx_changeset_act(plan->set, index, SBX_ENTRY_MERGED);
	return r;
}

/* The head's content with the merged metadata. */
static int stage_theirs(struct sbx_plan *plan, uint32_t index, const struct sbx_place *theirs,
	const struct sbx_meta *meta)
{
	int stage_fd = plan->resolve->stage_fd, r;
	char name[SBX_STAGE_NAME_SIZE];

	sbx_stage_name(index, name);
	r = sbx_file_copy(theirs->dir_fd, theirs->name, stage_fd, name);
	if (r == 0)
		r = sbx_meta_apply(stage_fd, name, meta);
	if (r == 0)
		sbx_changeset_act(plan->set, index, SBX_ENTRY_MERGED);
	return r;
}

/* The three texts of a path. */
struct texts {
	struct sbx_buf base;
	struct sbx_buf head;
	struct sbx_buf ours;
};

static void texts_done(struct texts *texts)
{
	sbx_buf_done(&texts->base);
	sbx_buf_done(&texts->head);
	sbx_buf_done(&texts->ours);
}

/* 1 when all three can be merged by lines, 0 when one is binary or too large. */
static int read_texts(
	const struct sbx_sides *sides, const struct sbx_place *ours, struct texts *ret)
{
	const struct {
		const struct sbx_place *place;
		struct sbx_buf *buf;
	} all[] = {{&sides->base, &ret->base}, {&sides->head, &ret->head}, {ours, &ret->ours}};

	for (size_t i = 0; i < SBX_N_ELEMENTS(all); i++) {
		int r = sbx_place_read(all[i].place, SBX_LINES_BYTES_MAX, all[i].buf);

		if (r < 0)
			return r == -EFBIG ? 0 : r;
		if (sbx_text_is_binary(all[i].buf->data, all[i].buf->size))
			return 0;
	}
	return 1;
}

static int conflict_with_ranges(struct sbx_plan *plan, const char *name,
	const struct sbx_sides *sides, const struct sbx_merge *merge)
{
	int r = sbx_trail_path(plan->trail, name, &plan->path);

	if (r < 0)
		return r;
	return sbx_conflicts_add(
		plan->conflicts, plan->path.data, SBX_CONFLICT_CONTENT, sides->head.layer, merge);
}

static struct sbx_merge_text merge_text(const struct sbx_buf *buf)
{
	return (struct sbx_merge_text){.data = buf->data, .size = buf->size};
}

static int merge_contents(struct sbx_plan *plan, uint32_t index, const struct sbx_sides *sides,
	const struct sbx_place *ours, const struct sbx_meta *meta)
{
	const char *name = sbx_entry_name(plan->set, index);
	SBX_CLEANUP(texts_done) struct texts texts = {0};
	SBX_MERGE struct sbx_merge merge = SBX_MERGE_INIT;
	struct sbx_merge_text base, our, head;
	int r = read_texts(sides, ours, &texts);

	if (r < 0)
		return r;
	if (r == 0)
		return sbx_plan_conflict(plan, name, SBX_CONFLICT_BINARY, sides);
	base = merge_text(&texts.base);
	our = merge_text(&texts.ours);
	head = merge_text(&texts.head);
	r = sbx_merge(&base, &our, &head, &merge, NULL);
	if (r < 0)
		return r;
	return merge.clean ? stage_text(plan, index, &merge.merged, meta)
			   : conflict_with_ranges(plan, name, sides, &merge);
}

/* Both changed what the file holds, differently. */
static int plan_contents(struct sbx_plan *plan, uint32_t index, const struct sbx_sides *sides,
	const struct sbx_place *ours, const struct sbx_meta *meta)
{
	if (S_ISLNK(ours->st.st_mode))
		return sbx_plan_conflict(
			plan, sbx_entry_name(plan->set, index), SBX_CONFLICT_SYMLINK, sides);
	return merge_contents(plan, index, sides, ours, meta);
}

/* Same kind on all three sides, and theirs changed: combine. */
static int plan_three_way(struct sbx_plan *plan, uint32_t index, const struct sbx_sides *sides,
	const struct sbx_place *ours, int theirs_changed)
{
	const struct sbx_entry *entry = &plan->set->entries[index];
	bool ours_content = entry->flags & SBX_ENTRY_CONTENT;
	bool theirs_content = theirs_changed & SBX_DIFFERS_CONTENT;
	SBX_META struct sbx_meta meta = SBX_META_INIT;
	int r, differences;

	if (!(entry->flags & (SBX_ENTRY_CONTENT | SBX_ENTRY_META)))
		return drop(plan, index); /* a new mtime yields */
	differences = sbx_place_compare(ours, &sides->head);
	if (differences < 0)
		return differences;
	if (!(differences & ~SBX_DIFFERS_MTIME))
		return drop(plan, index);
	r = sbx_sides_merge_meta(sides, ours, &meta);
	if (r < 0)
		return r;
	if (r > 0)
		return sbx_plan_conflict(
			plan, sbx_entry_name(plan->set, index), SBX_CONFLICT_METADATA, sides);
	if (theirs_content && ours_content && (differences & SBX_DIFFERS_CONTENT))
		return plan_contents(plan, index, sides, ours, &meta);
	if (theirs_content && !ours_content)
		return stage_theirs(plan, index, &sides->head, &meta);
	sbx_changeset_act(plan->set, index, SBX_ENTRY_SET_META);
	return 0;
}

/* The head has something else than the base, and neither is a directory. */
static int plan_changed_there(struct sbx_plan *plan, uint32_t index, const struct sbx_sides *sides,
	const struct sbx_place *ours, int theirs_changed)
{
	const struct sbx_entry *entry = &plan->set->entries[index];
	int differences;

	if (!(theirs_changed & SBX_DIFFERS_KIND) && entry->change != SBX_CHANGE_REPLACE)
		return plan_three_way(plan, index, sides, ours, theirs_changed);
	if (!(entry->flags & (SBX_ENTRY_CONTENT | SBX_ENTRY_META)))
		return drop(plan, index);
	differences = sbx_place_compare(ours, &sides->head);
	if (differences < 0)
		return differences;
	if (!(differences & ~SBX_DIFFERS_MTIME))
		return drop(plan, index);
	return sbx_plan_conflict(plan, sbx_entry_name(plan->set, index), SBX_CONFLICT_TYPE, sides);
}

int sbx_plan_file(struct sbx_plan *plan, uint32_t index, const struct sbx_sides *sides)
{
	struct sbx_place ours;
	int r;

	if (!sides->in_head)
		return sides->in_base ? plan_deleted_there(plan, index, sides) : 0;
	if (S_ISDIR(sides->head.st.st_mode) || (sides->in_base && S_ISDIR(sides->base.st.st_mode)))
		return plan_against_dir(plan, index, sides);
	r = sbx_place_in_tree(plan->trail, sbx_entry_name(plan->set, index), &ours);
	if (r < 0)
		return r;
	if (!sides->in_base)
		return plan_both_added(plan, index, sides, &ours);
	r = sbx_place_compare(&sides->base, &sides->head);
	if (r < 0 || !(r & ~SBX_DIFFERS_MTIME))
		return r < 0 ? r : 0; /* the head has it as it was */
	return plan_changed_there(plan, index, sides, &ours, r);
}
