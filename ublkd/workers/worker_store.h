/* SPDX-License-Identifier: MIT */
/* The store that a worker has opened, or has refused to serve. */
#pragma once

#include "ublkd/proto/worker_msg.h"

struct worker_store {
        bool known;
        struct backing_identity identity;
        uint32_t major, minor; /* of the disk, or of the file system that has the file */
        uint64_t inode;        /* of the file; 0: a disk */
        bool claimed;          /* fd is an exclusive open of a block device */
        int fd;                /* -1: refused, or taken */
};

/* Read a message of type BACKING. fd: what came with it, or -1; it becomes part of *ret. */
void worker_store_read(const struct worker_msg *msg, int fd, struct worker_store *ret);
/* Return the message for the store; its strings are those of `store`. */
struct worker_msg worker_store_message(const struct worker_store *store);
