/* SPDX-License-Identifier: MIT */
/* The delivery of a private node, or of a mounted file system, to the client at the other end of a Unix socket. */
#include "ublkd/nodes/client_delivery.h"
#include "ublkd/nodes/node_delivery.h"
#include "ublkd/nodes/private_node.h"
#include "ublkd/nodes/process_ids.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/peers/peer_groups.h"
#include "ublkd/peers/peer_process.h"

#include <sys/pidfd.h>
#include <sys/socket.h>

static bool is_unix(int client)
{
        int domain = AF_UNSPEC;
        socklen_t size = sizeof(domain);

        return getsockopt(client, SOL_SOCKET, SO_DOMAIN, &domain, &size) >= 0 && domain == AF_UNIX;
}

static int begin_for_client(struct node_deliveries *deliveries, int client, struct delivery_request *request,
        void (*done)(void *userdata, const struct delivery_report *report), void *userdata,
        struct node_delivery **ret)
{
        _cleanup_peer_groups_ struct peer_groups groups = {};
        struct peer_process peer;
        int r = peer_groups_read(client, &groups);

        if (r >= 0)
                r = peer_process_open(client, &peer);
        if (r < 0)
                return r;
        request->pid = peer.pid;
        request->pidfd = peer.pidfd;
        request->account = peer.uid;
        request->uid = peer.uid; /* the ids of the connection, as for every other right of the client */
        request->gid = peer.gid;
        request->groups = peer_groups_list(&groups);
        request->group_count = groups.count;
        r = node_delivery_begin(deliveries, request, done, userdata, ret);
        peer_process_close(&peer);
        return r;
}

/* The process may have ended since, and another one have its number: then the delivery to it fails, and counts to the wrong user until
 * then. */
static int begin_for_process(struct node_deliveries *deliveries, pid_t pid, struct delivery_request *request,
        void (*done)(void *userdata, const struct delivery_report *report), void *userdata,
        struct node_delivery **ret)
{
        _cleanup_close_ int process = pidfd_open(pid, 0);
        gid_t gid;
        int r = process < 0 ? -errno : process_ids_read(pid, &request->account, &gid);

        if (r < 0)
                return r == -ENOENT ? -ESRCH : r;
        request->pid = pid;
        request->pidfd = process;
        request->uid = DELIVERY_IDS_OF_PROCESS; /* when it is delivered */
        return node_delivery_begin(deliveries, request, done, userdata, ret);
}

int client_delivery_begin(struct node_deliveries *deliveries, struct private_nodes *nodes, int client,
        const struct delivery_source *source, const struct delivery_wish *wish,
        void (*done)(void *userdata, const struct delivery_report *report), void *userdata,
        struct node_delivery **ret)
{
        struct delivery_request request = {
                .path = wish->path, .tree = -1, .read_only = wish->read_only, .no_exec = wish->no_exec};
        _cleanup_close_ int tree = -1;

        if (!wish->pid && !is_unix(client))
                return -EOPNOTSUPP;
        if (wish->mount) {
                request.mount = source->mount;
                request.number = source->number;
        } else {
                request.tree = tree = nodes ? private_node_clone(nodes, source->uid) : -ENOENT;
                if (tree < 0)
                        return tree;
        }
        return wish->pid ? begin_for_process(deliveries, wish->pid, &request, done, userdata, ret)
                         : begin_for_client(deliveries, client, &request, done, userdata, ret);
}
