/* SPDX-License-Identifier: MIT */
/* The rights of a user of the host for files, for one piece of work.
 *
 * The work runs on a thread of its own, which takes the user's ids for file systems and the user's groups, and has no
 * capability. Its other ids stay, so the user can neither signal nor trace the process. The rights of the calling thread
 * do not change. */
#pragma once

#include <sys/types.h>

/* Paths; NULL: those of this host. */
struct user_accounts {
        const char *passwd, *group;
};

/* Run `work` with the rights of `user`, and wait for it. The user's group and supplementary groups are those that the
 * files have now; a user whom they do not have is in no group. No name service is asked. `accounts` may be NULL. Call
 * with capabilities, unless the process runs as that user. Return what `work` returned; or -errno: it did not run. */
int user_rights_run(
        uid_t user, const struct user_accounts *accounts, int (*work)(void *userdata), void *userdata);
