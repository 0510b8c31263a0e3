/* SPDX-License-Identifier: MIT */
/* Who may read, and who may change devices: from the settings to the groups of this machine. */
#pragma once

#include "api/api.h"
#include "ublkd/config/config.h"

/* Return what clients may do, with the groups as /etc/group has them now, which may block. The names belong to
 * `values`. */
struct api_rights access_groups_find(const struct setting_values *values);
/* Log which of the groups do not exist, which is not an error. */
void access_groups_log(const struct api_rights *rights);
/* Find the group of the sockets that ublkd opens; *ret has no name if none was set. Return 0; -ENOENT with a problem,
 * which names the place of the setting: there is no such group. May block. */
int access_groups_of_socket(
        const struct config *config, struct api_group *ret, struct problem_list *problems);
