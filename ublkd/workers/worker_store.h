/* SPDX-License-Identifier: MIT */
/* The stores that a worker has opened, or has refused to serve. */
#pragma once

#include "ublkd/proto/worker_msg.h"

struct worker_store {
        struct backing_identity identity;
        uint32_t major, minor; /* of the disk, or of the file system that has the file */
        uint64_t inode;        /* of the file; 0: a disk */
        bool claimed;          /* fd is an exclusive open of a block device */
        int fd;                /* -1: refused, or taken */
};

/* Zero-initialise: nothing is known. */
struct worker_stores {
        struct worker_store *items; /* in the order of the tree */
        unsigned count;
        bool is_list; /* of a tree that has a list of stores (target_tree_has_list()) */
};

/* Read a message of type BACKING. fds: what came with it, at most STORE_LIST_MAX of them and then -1; those that are taken become
 * -1, and part of *ret. Return 0; -EBADMSG: there are more or fewer than the message says; -ENOMEM. */
int worker_stores_read(
        const struct worker_msg *msg, int fds[static STORE_LIST_MAX], struct worker_stores *ret);
/* Close the descriptors that are left, and empty it. */
void worker_stores_clear(struct worker_stores *stores);
/* Return the message for the only store of a disk without a list; its strings are those of `store`. */
struct worker_msg worker_store_message(const struct worker_store *store);
/* Return the entry of a list, with whether there is a descriptor. */
struct listed_store worker_store_listed(const struct worker_store *store);
