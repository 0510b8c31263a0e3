/* SPDX-License-Identifier: MIT */
/* The users, groups and subordinate uids of this host, from files. No name service is asked: it may be a server that does
 * not answer, and what it says could change who may have what. A user or a group of a directory is given by its
 * number. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Paths; NULL: those of this host. */
struct policy_accounts {
        const char *passwd, *group, *subuid;
};

struct uid_range {
        uint32_t first, last;
};

/* Find a user or a group by its name. Reads a file, which may block. Return 1; 0: there is none; -ENOMEM, or another
 * -errno: the file cannot be read. */
int policy_accounts_user(const struct policy_accounts *accounts, const char *name, uint32_t *ret_uid);
int policy_accounts_group(const struct policy_accounts *accounts, const char *name, uint32_t *ret_gid);
/* Append the subordinate uids of a user to *ranges (*count). Uid 0 and the number that stands for none are never among them.
 * Return how many ranges were appended, or -errno. */
int policy_accounts_subuids(
        const struct policy_accounts *accounts, const char *name, struct uid_range **ranges, size_t *count);
/* Append all subordinate uids of this host, but those of root, as only root can be these users. Return 0; -EBADMSG: the
 * path leads to something else than a file, or a line has another number than a plain decimal; other -errno. */
int policy_accounts_all_subuids(
        const struct policy_accounts *accounts, struct uid_range **ranges, size_t *count);
