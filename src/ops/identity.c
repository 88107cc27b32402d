/* SPDX-License-Identifier: MIT */
#include "identity.h"

#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

#include "sbx/caps.h"

#define FILE_UMASK 0022 /* a default ACL of a directory overrides it, as for everybody */

/* Neither call reports failure; an id that cannot be set makes them tell the present one. */
static bool is(uid_t uid, gid_t gid)
{
	return (uid_t)setfsuid((uid_t)-1) == uid && (gid_t)setfsgid((gid_t)-1) == gid;
}

void sbx_identity_restore(struct sbx_identity *identity)
{
	int saved = errno;

	if (!identity->active)
		return;
	(void)umask(identity->umask);
	(void)setfsgid(identity->gid);
	(void)setfsuid(identity->uid); /* from another user back to root also raises the rights */
	if (!is(identity->uid, identity->gid))
		abort(); /* work done with the wrong ids could not be taken back */
	identity->active = false;
	errno = saved;
}

int sbx_identity_assume(struct sbx_identity *identity, uid_t uid, gid_t gid,
	enum sbx_identity_flags flags, struct sbx_err *err)
{
	identity->umask = umask(FILE_UMASK);
	identity->gid = (gid_t)setfsgid(gid);
	identity->uid = (uid_t)setfsuid(uid);
	identity->active = true;
	if (!is(uid, gid))
		return sbx_err_kind(err, SBX_KIND_INTERNAL, EPERM,
			"cannot touch files as user %u, group %u", (unsigned int)uid,
			(unsigned int)gid);
	return flags & SBX_IDENTITY_PRIVILEGED ? sbx_caps_raise(err) : 0;
}
