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
