/* SPDX-License-Identifier: MIT */
/* Unmounts what was taken back, in one mount namespace. */
#pragma once

#include <sys/types.h>

enum { RECALL_ID = 65534 /* user and group of the process meanwhile */ };

enum recall_what {
        RECALL_NODES,       /* nodes that were taken back, used or not */
        RECALL_FIND_MOUNTS, /* copies of a mount: whether there is one; the user namespace is not entered */
        RECALL_TRY_MOUNTS,  /* whether each copy could be unmounted; none is */
        RECALL_MOUNTS,      /* copies that no process uses, until the first that one uses */
};

struct recall_wish {
        enum recall_what what;
        dev_t device; /* of the file system that has the nodes, or of the disk */
};

/* Enter the namespaces, and unmount there. The process can do nothing else after it. Return 0, also if there was nothing, or it is covered;
 * -EBUSY: a process uses it; -EEXIST: RECALL_FIND_MOUNTS has found one; other -errno. */
int recall_here(int mounts, int users, const struct recall_wish *wish);
