/* SPDX-License-Identifier: MIT */
/* The process that unmounts nodes which were taken back: ublkd, executed again with NODE_RECALL_OPTION; and the same for file
 * systems, in a process that is at hand. */
#pragma once

#include "ublkd/nodes/recall_here.h"

#include <sys/types.h>

#define NODE_RECALL_NAME "node-recall"
#define NODE_RECALL_OPTION "--" NODE_RECALL_NAME

enum { RECALL_NODES_FD = 3 /* the directory of the nodes */ };
enum { RECALL_HINDERED = 2, RECALL_BUSY, RECALL_FOUND };

/* Look through the mount namespaces of all containers. Return the exit status: 0, also if there was nothing, or a container
 * has covered a mount; EXIT_FAILURE: the search has failed; RECALL_HINDERED: a container has stopped or killed it, or its
 * user has had its time. */
int recall_process_main(void);

/* Look for the copies of the mount at a path, in a child, for ten seconds at most: in the mount namespaces of the users to
 * whom it was delivered, or in those of all containers if that is not known (mount_users.h). disk: of the mount. mount: the
 * path; NULL: in those of all containers. what: one of RECALL_..._MOUNTS. Return 0; -EBUSY: a process uses one, and the search
 * has ended there; -EEXIST: RECALL_FIND_MOUNTS has found one; -ETIMEDOUT: a container has hindered the search, or it took too
 * long; -EIO: it has failed; other -errno. */
int recall_mounts(dev_t disk, const char *mount, enum recall_what what);
