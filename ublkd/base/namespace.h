/* SPDX-License-Identifier: MIT */
/* Whose the namespaces of other processes are. */
#pragma once

#include <sys/types.h>

/* Return 1 if the namespace is that of this process, of which `name` is in /proc/self/ns; 0 if not; -errno. */
int namespace_is_ours(int namespace, const char *name);

/* Find the user of the host who has made the user namespace, or the outermost one around it. Return 1; 0: it is ours, or not
 * in ours; -errno. */
int namespace_find_owner(int users, uid_t *ret);
