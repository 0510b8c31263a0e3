/* SPDX-License-Identifier: MIT */
/* The delivery of a private node to the client at the other end of a Unix socket. */
#include "ublkd/nodes/client_delivery.h"
#include "ublkd/nodes/node_delivery.h"
#include "ublkd/nodes/private_node.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/peers/peer_process.h"

#include <sys/socket.h>

/* The ids are those of the connection, as for every other right of the client. */
static int read_groups(
        int client, gid_t *ret_gid, gid_t groups[static DELIVERY_GROUPS_MAX], size_t *ret_count)
{
        struct ucred credentials;
        socklen_t size = sizeof(credentials);

        if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
                return -errno;
        size = DELIVERY_GROUPS_MAX * sizeof(*groups);
        if (getsockopt(client, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
                return errno == ERANGE ? -E2BIG : -errno;
        *ret_gid = credentials.gid;
        *ret_count = size / sizeof(*groups);
        return 0;
}

static bool is_unix(int client)
{
        int domain = AF_UNSPEC;
        socklen_t size = sizeof(domain);

        return getsockopt(client, SOL_SOCKET, SO_DOMAIN, &domain, &size) >= 0 && domain == AF_UNIX;
}

int client_delivery_begin(struct node_deliveries *deliveries, struct private_nodes *nodes, int client,
        const char *uid, const char *path, void (*done)(void *userdata, const struct delivery_report *report),
        void *userdata, struct node_delivery **ret)
{
        gid_t groups[DELIVERY_GROUPS_MAX];
        struct delivery_request request = {.path = path, .groups = groups};
        _cleanup_close_ int tree = -1;
        struct peer_process peer;
        int r = is_unix(client) ? read_groups(client, &request.gid, groups, &request.group_count)
                                : -EOPNOTSUPP;

        if (r < 0)
                return r;
        request.tree = tree = private_node_clone(nodes, uid);
        if (tree < 0)
                return tree;
        r = peer_process_open(client, &peer);
        if (r < 0)
                return r;
        request.pid = peer.pid;
        request.pidfd = peer.pidfd;
        request.uid = peer.uid;
        r = node_delivery_begin(deliveries, &request, done, userdata, ret);
        peer_process_close(&peer);
        return r;
}
