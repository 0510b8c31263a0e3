/* SPDX-License-Identifier: MIT */
/* The delivery of a private node, or of a mounted file system, into the mount namespace of a process, as an event. A process
 * of its own does it, of which the loop waits for nothing: what a container can do is to stop it, or to have it wait for a
 * file system that does not answer. Then it is killed at the deadline. One that cannot be killed counts against its user until it is
 * gone. */
#pragma once

#include "ublkd/nodes/delivery_wire.h"

#include <systemd/sd-event.h>

struct node_deliveries;
struct node_delivery;

struct delivery_limits {
        const char *program;    /* of the process; outlives the deliveries. NULL: this very program */
        uint64_t patience_usec; /* for one delivery; 0: 10 s */
        unsigned running_max;   /* processes at once; 0: 32 */
        unsigned user_max;      /* of one account; 0: 2 */
        /* Return the first uid of those that count together; NULL: each user counts alone. */
        uint32_t (*account)(void *userdata, uid_t uid);
        void *userdata;
};

struct delivery_request {
        pid_t pid; /* of the process that wants the node, and its pidfd */
        int pidfd;
        uid_t account; /* of the user to whom the delivery counts: that of the process */
        uid_t uid;     /* its ids, as SO_PEERCRED and SO_PEERGROUPS show them; or DELIVERY_IDS_OF_PROCESS */
        gid_t gid;
        const gid_t *groups;
        size_t group_count;
        const char *path; /* absolute, in the root directory of the process: nothing is there yet */
        int tree;         /* private_node_clone(); of a node */
        /* Of a file system: where it is mounted, and the file with the device number of its disk; NULL: it is a node. */
        const char *mount, *number;
        bool read_only, no_exec;
};

/* Prepare deliveries. options: NULL: the defaults. Return 0 or -errno. */
int node_deliveries_new(sd_event *event, const struct delivery_limits *options, struct node_deliveries **ret);
/* Kill what is under way, and free all. NULL is fine. Return NULL. */
struct node_deliveries *node_deliveries_free(struct node_deliveries *deliveries);

/* Begin. `done` is called once from the loop, unless the delivery is cancelled; then *ret is not valid any more. `done`
 * must not free `deliveries`. The descriptors stay the caller's. Return 0; -EINVAL: the path is not absolute, or names no
 * file; -ENAMETOOLONG; -E2BIG: too many groups; -EBUSY: too many deliveries of this user; -EAGAIN: too many at all; other
 * -errno. */
int node_delivery_begin(struct node_deliveries *deliveries, const struct delivery_request *request,
        void (*done)(void *userdata, const struct delivery_report *report), void *userdata,
        struct node_delivery **ret);
/* Kill the process; `done` is not called. The node may be there nevertheless. */
void node_delivery_cancel(struct node_delivery *delivery);
