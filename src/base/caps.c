/* SPDX-License-Identifier: MIT */
#include "sbx/caps.h"

static inline void caps_free(cap_t *caps)
{
	if (*caps)
		(void)cap_free(*caps); /* fails only for foreign pointers */
}
#define CAPS SBX_CLEANUP(caps_free)

static const cap_flag_t sets[] = {CAP_EFFECTIVE, CAP_PERMITTED, CAP_INHERITABLE};

static bool kept(cap_value_t cap, const cap_value_t *keep, size_t n_keep)
{
	for (size_t i = 0; i < n_keep; i++)
		if (keep[i] == cap)
			return true;
	return false;
}

static int drop_bounding(const cap_value_t *keep, size_t n_keep, struct sbx_err *err)
{
	for (cap_value_t cap = 0; cap < cap_max_bits(); cap++)
		if (!kept(cap, keep, n_keep) && cap_drop_bound(cap) < 0)
			return sbx_err_set(
				err, errno, "drop capability %d from the bounding set: %m", cap);
	return 0;
}

static int check_dropped(cap_t now, cap_value_t cap, struct sbx_err *err)
{
	cap_flag_value_t value;

	for (size_t i = 0; i < SBX_N_ELEMENTS(sets); i++)
		if (cap_get_flag(now, cap, sets[i], &value) < 0 || value != CAP_CLEAR)
			return sbx_err_set(
				err, EPERM, "capability %d is still held after dropping it", cap);
	if (cap_get_bound(cap) != 0)
		return sbx_err_set(err, EPERM, "capability %d is still in the bounding set", cap);
	return 0;
}

/* The sets after the change must be what was asked for: read back and compared. What is neither
 * permitted nor inheritable cannot be ambient (capabilities(7)), so only the kept are asked for. */
static int check_kept(const cap_value_t *keep, size_t n_keep, struct sbx_err *err)
{
	CAPS cap_t now = cap_get_proc();
	int r = 0;

	if (!now)
		return sbx_err_set(err, errno, "read capabilities back: %m");
	for (cap_value_t cap = 0; r == 0 && cap < cap_max_bits(); cap++) {
		if (!kept(cap, keep, n_keep))
			r = check_dropped(now, cap, err);
		else if (cap_get_ambient(cap) == 1)
			r = sbx_err_set(err, EPERM, "capability %d is ambient", cap);
	}
	return r;
}

int sbx_caps_keep_only(const cap_value_t *keep, size_t n_keep, struct sbx_err *err)
{
	CAPS cap_t caps = cap_init(), now = cap_get_proc();
	cap_flag_value_t permitted;
	int r;

	if (!caps || !now)
		return sbx_err_set(err, errno, "make a capability set: %m");
	r = drop_bounding(keep, n_keep, err);
	if (r < 0)
		return r;
	if (cap_reset_ambient() < 0 && errno != EINVAL)
		return sbx_err_set(err, errno, "clear the ambient capabilities: %m");
	for (size_t i = 0; i < n_keep; i++) {
		if (cap_get_flag(now, keep[i], CAP_PERMITTED, &permitted) < 0 ||
			permitted != CAP_SET)
			continue; /* unknown to this kernel, or already denied to us */
		for (size_t s = 0; s < SBX_N_ELEMENTS(sets); s++)
			if (cap_set_flag(caps, sets[s], 1, &keep[i], CAP_SET) < 0)
				return sbx_err_set(err, errno, "keep capability %d: %m", keep[i]);
	}
	if (cap_set_proc(caps) < 0)
		return sbx_err_set(err, errno, "set capabilities: %m");
	return check_kept(keep, n_keep, err);
}

int sbx_caps_raise(struct sbx_err *err)
{
	CAPS cap_t caps = cap_get_proc();
	cap_flag_value_t value;

	if (!caps)
		return sbx_err_set(err, errno, "read capabilities: %m");
	for (cap_value_t cap = 0; CAP_IS_SUPPORTED(cap); cap++)
		if (cap_get_flag(caps, cap, CAP_PERMITTED, &value) == 0 && value == CAP_SET &&
			cap_set_flag(caps, CAP_EFFECTIVE, 1, &cap, CAP_SET) < 0)
			return sbx_err_set(err, errno, "raise capability %d: %m", cap);
	if (cap_set_proc(caps) < 0)
		return sbx_err_set(err, errno, "raise capabilities: %m");
	return 0;
}
