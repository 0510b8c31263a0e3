/* SPDX-License-Identifier: MIT */
/* Which control groups a rule is for: paths, and units of systemd. Pure. */
#pragma once

#include <stdbool.h>

/* Return whether `path` is the group `of`, or one below it: "/a/b" is below "/a", "/ab" is not, and nothing is
 * below "/". Both are absolute, without a "/" at the end. */
bool policy_cgroup_is_below(const char *path, const char *of);

/* Return whether a process in that group belongs to the unit of the system's systemd: a service, a scope, or a slice around
 * it. The groups of systemd begin with slices, in which only root makes groups; what follows is the unit. Below that the unit
 * may have groups of its own, with any names (Delegate=, user@1000.service), which do not count. */
bool policy_cgroup_is_in_unit(const char *path, const char *unit);
