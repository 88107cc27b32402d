/* SPDX-License-Identifier: MIT */
/* Small helpers that every file uses: ownership attributes, hand-over, sizes. */
#ifndef SBX_UTIL_H
#define SBX_UTIL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define SBX_N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))
#define SBX_MIN(a, b)     ((a) < (b) ? (a) : (b))
#define SBX_MAX(a, b)     ((a) > (b) ? (a) : (b))
#define SBX_PRINTF(f, a)  __attribute__((format(printf, f, a)))
#define SBX_UNUSED        __attribute__((unused))

#define SBX_NSEC_PER_SEC  UINT64_C(1000000000)
#define SBX_NSEC_PER_MSEC UINT64_C(1000000)

/* Closes *fd if it holds one and leaves -EBADF; errno is kept. */
static inline void sbx_fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd); /* Linux releases the descriptor whatever close() returns */
	*fd = -EBADF;
	errno = saved;
}

static inline void sbx_free_pointer(void *pp)
{
	int saved = errno;

	free(*(void **)pp);
	*(void **)pp = NULL;
	errno = saved;
}

/* The array with room for one more than n items of size bytes, or NULL: it is as it was. */
static inline void *sbx_grown(void *array, size_t *capacity, size_t n, size_t size)
{
	size_t wanted = *capacity * 2 + 16;

	if (n < *capacity)
		return array;
	array = reallocarray(array, wanted, size);
	if (array)
		*capacity = wanted;
	return array;
}

/* Makes room for one more than n items in *array, which has *capacity of them: 0 or -ENOMEM. */
#define sbx_grow(array, capacity, n)                                                               \
	({                                                                                         \
		__typeof__(*(array)) sbx_grown_ =                                                  \
			sbx_grown(*(array), capacity, n, sizeof(**(array)));                       \
		if (sbx_grown_)                                                                    \
			*(array) = sbx_grown_;                                                     \
		sbx_grown_ ? 0 : -ENOMEM;                                                          \
	})

/* Gives the descriptor away: returns it and leaves -EBADF behind. */
static inline int sbx_fd_take(int *fd)
{
	int r = *fd;

	*fd = -EBADF;
	return r;
}

/* Gives a pointer away: yields it and leaves NULL behind. */
#define sbx_take(pp)                                                                               \
	({                                                                                         \
		__typeof__(*(pp)) sbx_taken_ = *(pp);                                              \
		*(pp) = NULL;                                                                      \
		sbx_taken_;                                                                        \
	})

#define SBX_CLEANUP(f) __attribute__((cleanup(f)))
#define SBX_CLOSE      SBX_CLEANUP(sbx_fd_close)
#define SBX_FREE       SBX_CLEANUP(sbx_free_pointer)

#endif
