/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target without a fuzzer, so that it is part of every check: each seed as it is, and
 * a fixed number of small changes of it, the same ones each time. scripts/fuzz looks further.
 *
 * The seeds of fuzz_NAME lie in tests/fuzz/seeds/NAME of the source tree ($SBX_SOURCE_DIR). A
 * target that is wrong aborts; then the plan of the TAP output is not fulfilled.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "sbx/fs.h"

#define SEED_SIZE_MAX (1u << 20)
#define N_VARIATIONS  500
#define N_EDITS_MAX   4 /* small changes in one variation */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* xorshift64: the same row of numbers on every run. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* One byte changed, removed, or doubled with what stands around it. */
static void edit(struct sbx_buf *text, uint64_t *random)
{
	size_t at = text->size ? next_random(random) % text->size : 0;
	size_t n = 1 + next_random(random) % 8;

	if (!text->size)
		return;
	n = SBX_MIN(n, text->size - at);
	switch (next_random(random) % 4) {
	case 0:
		text->data[at] = (char)next_random(random);
		break;
	case 1:
		text->data[at] ^= (char)(1 << next_random(random) % 8);
		break;
	case 2:
		memmove(text->data + at, text->data + at + n, text->size - at - n);
		text->size -= n;
		break;
	default:
		if (sbx_buf_reserve(text, n) < 0)
			abort();
		memmove(text->data + at + n, text->data + at, text->size - at);
		text->size += n;
	}
}

static void run(const struct sbx_buf *text)
{
	/* A copy of exactly this size, so that a read behind it is seen by ASan. */
	uint8_t *copy = malloc(SBX_MAX(text->size, (size_t)1));

	if (!copy)
		abort();
	if (text->size)
		memcpy(copy, text->data, text->size);
	(void)LLVMFuzzerTestOneInput(copy, text->size); /* 0, or -1: not interesting */
	free(copy);
}

static int run_seed(int dir_fd, const char *name)
{
	SBX_BUF struct sbx_buf seed = SBX_BUF_INIT;
	uint64_t random = UINT64_C(0x9e3779b97f4a7c15);
	int r = sbx_fs_read_at(dir_fd, name, SEED_SIZE_MAX, &seed);

	if (r < 0)
		return r;
	run(&seed);
	for (size_t i = 0; i < N_VARIATIONS; i++) {
		SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

		if (sbx_buf_append(&text, seed.data ? seed.data : "", seed.size) < 0)
			return -ENOMEM;
		for (size_t n = 1 + next_random(&random) % N_EDITS_MAX; n > 0; n--)
			edit(&text, &random);
		run(&text);
	}
	return 0;
}

static int is_seed(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int main(int argc, char *argv[])
{
	const char *source_dir = getenv("SBX_SOURCE_DIR"), *name = strstr(argv[0], "fuzz_");
	struct dirent **seeds;
	char path[4096];
	int dir_fd, n;

	(void)argc;
	if (!source_dir || !name) {
		(void)fputs("SBX_SOURCE_DIR is not set, or this is not fuzz_NAME\n", stderr);
		return 2;
	}
	name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	name += strlen("fuzz_");
	(void)snprintf(path, sizeof(path), "%s/tests/fuzz/seeds/%s", source_dir, name);
	n = scandir(path, &seeds, is_seed, alphasort);
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (n <= 0 || dir_fd < 0) {
		(void)fprintf(stderr, "no seeds in %s\n", path);
		return 1;
	}
	(void)printf("1..%d\n", n);
	for (int i = 0; i < n; i++) {
		int r = run_seed(dir_fd, seeds[i]->d_name);

		(void)printf("%s - fuzz::%s seed %s and %d variations\n", r < 0 ? "not ok" : "ok",
			name, seeds[i]->d_name, N_VARIATIONS);
		(void)fflush(stdout);
		free(seeds[i]);
	}
	free(seeds);
	(void)close(dir_fd);
	return 0;
}
