/* SPDX-License-Identifier: MIT */
/* The process that unmounts nodes which were taken back: ublkd, executed again with NODE_RECALL_OPTION; and the same for file
 * systems, in a process that is at hand. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define NODE_RECALL_NAME "node-recall"
#define NODE_RECALL_OPTION "--" NODE_RECALL_NAME

enum { RECALL_NODES_FD = 3 /* the directory of the nodes */ };
enum { RECALL_HINDERED = 2, RECALL_BUSY = 3 };

/* Look through the mount namespaces of all containers. Return the exit status: 0, also if there was nothing, or a container
 * has covered a mount; EXIT_FAILURE: the search has failed; RECALL_HINDERED: a container has stopped or killed it, or its
 * user has had its time. */
int recall_process_main(void);

/* Unmount the file system of a disk in the mount namespaces of all containers, in a child, for ten seconds at most. in_use: also what a
 * process uses, which keeps it then. Return 0, also if there was none; -EBUSY: a process uses one; -ETIMEDOUT: a container has hindered
 * the search; -EIO: it took too long; other -errno. */
int recall_mounts(dev_t disk, bool in_use);
