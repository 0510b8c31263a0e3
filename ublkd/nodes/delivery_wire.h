/* SPDX-License-Identifier: MIT */
/* The messages between the supervisor and the process that delivers a node: one order, one report. */
#pragma once

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#define NODE_DELIVERY_NAME "node-delivery"
#define NODE_DELIVERY_OPTION "--" NODE_DELIVERY_NAME

enum {
        DELIVERY_LINK_FD = 3, /* a socket that keeps messages apart */
        DELIVERY_PROCESS_FD,  /* a pidfd of the process that wants the node */
        DELIVERY_TREE_FD,     /* the node, as a mount that is nowhere yet */
        DELIVERY_GROUPS_MAX = 256,
};

struct delivery_order {
        pid_t pid; /* of the process; right as long as its pidfd shows that it runs */
        uid_t uid; /* in the user namespace of ublkd, as all ids here */
        gid_t gid;
        uint32_t group_count;
        gid_t groups[DELIVERY_GROUPS_MAX];
        char path[PATH_MAX]; /* in the root directory of the process */
};

enum delivery_outcome {
        DELIVERY_DONE,
        DELIVERY_AT_HOME,       /* the process is in the mount namespace of ublkd, where the node is */
        DELIVERY_WITHOUT_USERS, /* the process has the user namespace of ublkd, or is root of the host */
        DELIVERY_ENDED,         /* the process has ended */
        DELIVERY_NOT_ENTERED,   /* error: entering its namespaces, or becoming its user */
        DELIVERY_NO_FILE,       /* error: creating the file; EEXIST: there is one */
        DELIVERY_SHARED,        /* other mount namespaces would get the mount as well */
        DELIVERY_NOT_MOUNTED,   /* error: attaching the mount; the file was removed again */
        DELIVERY_LATE,          /* it took too long; the node may be there nevertheless */
        DELIVERY_TAKEN_BACK,    /* the node was taken back meanwhile, and is not mounted */
        _DELIVERY_OUTCOME_MAX
};

struct delivery_report {
        uint32_t outcome; /* enum delivery_outcome */
        int32_t error;    /* -errno; 0: none */
};
