/* SPDX-License-Identifier: MIT */
/* The supplementary groups that the process at the other end of a Unix socket had when it connected. */
#include "ublkd/peers/peer_groups.h"

#include <sys/socket.h>

int peer_groups_read(int socket, struct peer_groups *ret)
{
        struct peer_groups groups = {};
        socklen_t size = sizeof(groups.few);
        int r = getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.few, &size);

        if (r < 0 && errno == ERANGE) {
                groups.many = malloc(size);
                if (!groups.many)
                        return -ENOMEM;
                r = getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.many, &size);
        }
        if (r < 0) {
                r = -errno;
                free(groups.many);
                return r;
        }
        groups.count = size / sizeof(gid_t);
        *ret = groups;
        return 0;
}

void peer_groups_clear(struct peer_groups *groups)
{
        free(groups->many);
        *groups = (struct peer_groups){};
}

const gid_t *peer_groups_list(const struct peer_groups *groups)
{
        return groups->many ? groups->many : groups->few;
}

bool peer_groups_have(const struct peer_groups *groups, gid_t group)
{
        const gid_t *list = peer_groups_list(groups);

        for (size_t i = 0; i < groups->count; i++)
                if (list[i] == group)
                        return true;
        return false;
}
