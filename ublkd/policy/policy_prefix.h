/* SPDX-License-Identifier: MIT */
/* How the names of a tenant's devices begin: a template, in which "{uid}" stands for the tenant's uid. Pure.
 *
 * Names are unique on a host, so a client that may try any name can find out which ones others have: theirs are refused.
 * That is why no prefix of one tenant may begin with a prefix of another one. Then no name begins with both, and the names
 * that a tenant may try are either its own or free.
 *
 * One template for many users is safe if a character that is not a digit follows "{uid}": two of its prefixes begin with
 * the same text, then with the digits of two uids, then with that character. If one began with the other, both runs of
 * digits would end at the same place, and be the same uid. Without that character, "u{uid}" would give user 1 all names
 * of user 10. Templates of two rules are compared with each other as patterns; see policy_prefixes_overlap().
 *
 * The names of an administrator's devices are not bound to any prefix, but may not begin with one of a tenant: policy_name.h. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum {
        PREFIX_TEMPLATE_MAX = 40,             /* bytes, as in the schema */
        PREFIX_SIZE = PREFIX_TEMPLATE_MAX + 8 /* with the largest uid, and a NUL */
};

/* Return whether the template is safe for many users: "{uid}" and a character that is not a digit follows. */
bool policy_prefix_is_apart(const char *template);
/* Print the prefix of the user. */
void policy_prefix_print(const char *template, uid_t uid, char ret[static PREFIX_SIZE]);
/* Return whether the name begins with the prefix of a user by this template, which is safe for many users. *ret: the user. */
bool policy_prefix_match(const char *template, const char *name, uid_t *ret);
/* Return whether a prefix that one template can make begins with one of the other, or is the same, for any two uids. It may
 * also be true for a uid that does not exist (with a leading 0, say), never false for one that does. */
bool policy_prefixes_overlap(const char *one, const char *other);
