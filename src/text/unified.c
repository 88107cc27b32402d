/* SPDX-License-Identifier: MIT */
/* Differences as people and patch read them. */
#include "sbx/diff.h"

#include <string.h>

struct printer {
	const struct sbx_lines *a;
	const struct sbx_lines *b;
	struct sbx_buf *out;
	uint32_t context;
};

static bool needs_quotes(const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name < ' ' || *name == '"' || *name == '\\' || *name == 0x7f)
			return true;
	return false;
}

static int append_quoted(struct sbx_buf *out, const char *name)
{
	static const char escapes[] = "\aa\bb\tt\nn\vv\ff\rr\"\"\\\\";
	int r = sbx_buf_append(out, "\"", 1);

	for (; r == 0 && *name; name++) {
		const char *escape = NULL;

		for (size_t i = 0; !escape && i + 1 < sizeof(escapes); i += 2)
			if (escapes[i] == *name)
				escape = &escapes[i + 1];
		if (escape)
			r = sbx_buf_printf(out, "\\%c", *escape);
		else if ((unsigned char)*name < ' ' || *name == 0x7f)
			r = sbx_buf_printf(out, "\\%03o", (unsigned char)*name);
		else
			r = sbx_buf_append(out, name, 1);
	}
	return r < 0 ? r : sbx_buf_append(out, "\"", 1);
}

static int append_name(struct sbx_buf *out, const char *mark, const char *name)
{
	int r = sbx_buf_append_string(out, mark);

	if (r < 0)
		return r;
	if (!name)
		return sbx_buf_append_string(out, "/dev/null\n");
	r = needs_quotes(name) ? append_quoted(out, name) : sbx_buf_append_string(out, name);
	/* patch takes a name to end at a blank unless a tab follows */
	return r < 0 ? r : sbx_buf_append_string(out, strchr(name, ' ') ? "\t\n" : "\n");
}

static int append_lines(struct printer *printer, char mark, const struct sbx_lines *lines,
	uint32_t from, uint32_t to)
{
	static const char no_newline[] = "\n\\ No newline at end of file\n";

	for (uint32_t i = from; i < to; i++) {
		int r = sbx_buf_append(printer->out, &mark, 1);

		if (r == 0)
			r = sbx_buf_append(
				printer->out, sbx_line_data(lines, i), sbx_line_size(lines, i));
		if (r == 0 && i + 1 == lines->n && !lines->final_newline)
			r = sbx_buf_append_string(printer->out, no_newline);
		if (r < 0)
			return r;
	}
	return 0;
}

/* "12,3"; a count of 1 is left out, and an empty range names the line before it. */
static int append_range(struct sbx_buf *out, char mark, uint32_t start, uint32_t count)
{
	if (count == 1)
		return sbx_buf_printf(out, " %c%u", mark, start + 1);
	return sbx_buf_printf(out, " %c%u,%u", mark, count ? start + 1 : start, count);
}

/* How many of the regions from the first on share a hunk: their contexts touch. */
static size_t hunk_length(const struct sbx_diff_region *regions, size_t n_regions, uint32_t context)
{
	size_t n = 1;

	while (n < n_regions &&
		regions[n].a_start - (regions[n - 1].a_start + regions[n - 1].a_count) <=
			2 * (uint64_t)context)
		n++;
	return n;
}

static int append_hunk(struct printer *printer, const struct sbx_diff_region *regions, size_t n)
{
	const struct sbx_diff_region *last = &regions[n - 1];
	uint32_t before = SBX_MIN(printer->context, regions->a_start);
	uint32_t last_end = last->a_start + last->a_count;
	uint32_t after = SBX_MIN(printer->context, printer->a->n - last_end);
	uint32_t a = regions->a_start - before;
	uint32_t b = regions->b_start - before;
	uint32_t b_end = last->b_start + last->b_count + after;
	int r;

	r = sbx_buf_append_string(printer->out, "@@");
	if (r == 0)
		r = append_range(printer->out, '-', a, last_end + after - a);
	if (r == 0)
		r = append_range(printer->out, '+', b, b_end - b);
	if (r == 0)
		r = sbx_buf_append_string(printer->out, " @@\n");
	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct sbx_diff_region *region = &regions[i];
		uint32_t a_end = region->a_start + region->a_count;

		r = append_lines(printer, ' ', printer->a, a, region->a_start);
		if (r == 0)
			r = append_lines(printer, '-', printer->a, region->a_start, a_end);
		if (r == 0)
			r = append_lines(printer, '+', printer->b, region->b_start,
				region->b_start + region->b_count);
		a = a_end;
	}
	return r < 0 ? r : append_lines(printer, ' ', printer->a, a, a + after);
}

static int append_all(struct printer *printer, const struct sbx_diff *diff, const char *a_name,
	const char *b_name)
{
	int r = append_name(printer->out, "--- ", a_name);

	if (r == 0)
		r = append_name(printer->out, "+++ ", b_name);
	for (size_t i = 0, n; r == 0 && i < diff->n_regions; i += n) {
		n = hunk_length(diff->regions + i, diff->n_regions - i, printer->context);
		r = append_hunk(printer, diff->regions + i, n);
	}
	return r;
}

int sbx_diff_unified(const struct sbx_lines *a, const struct sbx_lines *b, const char *a_name,
	const char *b_name, uint32_t context, struct sbx_buf *out, struct sbx_err *err)
{
	SBX_DIFF struct sbx_diff diff = SBX_DIFF_INIT;
	struct printer printer = {.a = a, .b = b, .out = out, .context = context};
	int r;

	r = sbx_diff(a, b, 0, &diff, err);
	if (r < 0 || diff.n_regions == 0)
		return r;
	r = append_all(&printer, &diff, a_name, b_name);
	return r < 0 ? sbx_err_set(err, -r, "write a difference: %m") : 0;
}
