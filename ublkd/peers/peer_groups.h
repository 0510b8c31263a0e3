/* SPDX-License-Identifier: MIT */
/* The supplementary groups that the process at the other end of a Unix socket had when it connected, by their numbers on
 * the host. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stdbool.h>
#include <sys/types.h>

enum { PEER_GROUPS_FEW = 32 };

/* A process may have 65536. */
struct peer_groups {
        gid_t few[PEER_GROUPS_FEW];
        gid_t *many; /* owned; NULL: `few` has them */
        size_t count;
};

/* Read the groups of the peer of a connected socket. Return 0, -ENOMEM, or another -errno of getsockopt(). */
int peer_groups_read(int socket, struct peer_groups *ret);
void peer_groups_clear(struct peer_groups *groups);
#define _cleanup_peer_groups_ _cleanup_(peer_groups_clear)

const gid_t *peer_groups_list(const struct peer_groups *groups);
bool peer_groups_have(const struct peer_groups *groups, gid_t group);
