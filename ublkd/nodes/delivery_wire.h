/* SPDX-License-Identifier: MIT */
/* The messages between the supervisor and the process that delivers a node: one order, one report. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NODE_DELIVERY_NAME "node-delivery"
#define NODE_DELIVERY_OPTION "--" NODE_DELIVERY_NAME

enum {
        DELIVERY_LINK_FD = 3, /* a socket that keeps messages apart */
        DELIVERY_PROCESS_FD,  /* a pidfd of the process that wants the node */
        DELIVERY_TREE_FD,     /* the node, as a mount that is nowhere yet; not for a file system */
        DELIVERY_GROUPS_MAX = 256,
        DELIVERY_MOUNT_SIZE = 200, /* as MOUNT_PATH_SIZE, and more */
};

/* What a client wants to have, and where. */
struct delivery_wish {
        const char *path;        /* absolute, in the root directory of the process */
        pid_t pid;               /* of the process whose container it is; 0: the client */
        bool mount;              /* the file system that ublkd has mounted; false: the private node */
        bool read_only, no_exec; /* of a mount */
};

#define DELIVERY_IDS_OF_PROCESS ((uid_t) - 1)

struct delivery_order {
        pid_t pid; /* of the process; right as long as its pidfd shows that it runs */
        uid_t uid; /* in the user namespace of ublkd, as all ids here; DELIVERY_IDS_OF_PROCESS: those that it has */
        gid_t gid;
        uint32_t group_count;
        gid_t groups[DELIVERY_GROUPS_MAX];
        char path[PATH_MAX];              /* in the root directory of the process */
        char mount[DELIVERY_MOUNT_SIZE];  /* where the file system is mounted; "": it is a node */
        char number[DELIVERY_MOUNT_SIZE]; /* the file with the device number of its disk */
        uint32_t read_only, no_exec;      /* of a mount */
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
        DELIVERY_NO_MOUNT,      /* error: the file system is not mounted by ublkd */
        DELIVERY_NOT_CLONED,    /* error: copying the mount for the ids of the container */
        _DELIVERY_OUTCOME_MAX
};

struct delivery_report {
        uint32_t outcome; /* enum delivery_outcome */
        int32_t error;    /* -errno; 0: none */
};
