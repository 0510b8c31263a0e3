/* SPDX-License-Identifier: MIT */
/* The delivery of a private node to the client at the other end of a Unix socket. */
#pragma once

#include "ublkd/nodes/node_delivery.h"
#include "ublkd/nodes/private_node.h"

/* Begin to deliver the node of the device `uid` to the process that connected the socket `client`, as
 * node_delivery_begin() does. Return 0; -ENOENT: there is no node that is open; -ESRCH: the process has ended;
 * -EOPNOTSUPP: no Unix socket; -E2BIG, -EBUSY, -EAGAIN: as
 * node_delivery_begin(); other -errno. */
int client_delivery_begin(struct node_deliveries *deliveries, struct private_nodes *nodes, int client,
        const char *uid, const char *path, void (*done)(void *userdata, const struct delivery_report *report),
        void *userdata, struct node_delivery **ret);
