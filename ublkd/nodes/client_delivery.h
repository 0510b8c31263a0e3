/* SPDX-License-Identifier: MIT */
/* The delivery of a private node, or of a mounted file system, to the client at the other end of a Unix socket. */
#pragma once

#include "ublkd/nodes/node_delivery.h"
#include "ublkd/nodes/private_node.h"

struct delivery_source {
        const char *uid;            /* of the device */
        const char *mount, *number; /* as struct delivery_request has them */
};

/* Begin to deliver the node of the device `uid`, or the file system that `source` is about, to the process that connected the
 * socket `client`, or to the process wish->pid, as node_delivery_begin() does. nodes: NULL: there are none. Return 0;
 * -ENOENT: there is no node that is open; -ESRCH: the process has ended; -EOPNOTSUPP: no Unix socket; -E2BIG, -EBUSY,
 * -EAGAIN: as node_delivery_begin(); other -errno. */
int client_delivery_begin(struct node_deliveries *deliveries, struct private_nodes *nodes, int client,
        const struct delivery_source *source, const struct delivery_wish *wish,
        void (*done)(void *userdata, const struct delivery_report *report), void *userdata,
        struct node_delivery **ret);
