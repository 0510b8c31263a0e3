/* SPDX-License-Identifier: MIT */
/* The delivery of a private node to the client at the other end of a Unix socket. */
#include "ublkd/nodes/client_delivery.h"
#include "ublkd/nodes/node_delivery.h"
#include "ublkd/nodes/private_node.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/peers/peer_groups.h"
#include "ublkd/peers/peer_process.h"

#include <sys/socket.h>

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
        struct delivery_request request = {.path = path};
        _cleanup_peer_groups_ struct peer_groups groups = {};
        _cleanup_close_ int tree = -1;
        struct peer_process peer;
        int r = is_unix(client) ? peer_groups_read(client, &groups) : -EOPNOTSUPP;

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
        request.uid = peer.uid; /* the ids of the connection, as for every other right of the client */
        request.gid = peer.gid;
        request.groups = peer_groups_list(&groups);
        request.group_count = groups.count;
        r = node_delivery_begin(deliveries, &request, done, userdata, ret);
        peer_process_close(&peer);
        return r;
}
