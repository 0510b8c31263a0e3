/* SPDX-License-Identifier: MIT */
/* The store that a worker has opened, or has refused to serve. */
#include "ublkd/workers/worker_store.h"

#include <stdio.h>

void worker_store_read(const struct worker_msg *msg, int fd, struct worker_store *ret)
{
        *ret = (struct worker_store){
                .known = true,
                .identity = {.basis = (enum backing_basis)msg->backing.basis,
                             .is_disk = msg->backing.is_disk},
                .major = msg->backing.major,
                .minor = msg->backing.minor,
                .inode = msg->backing.inode,
                .claimed = msg->backing.claimed,
                .fd = fd,
        };
        snprintf(ret->identity.boot, sizeof(ret->identity.boot), "%s", msg->backing.boot);
        snprintf(ret->identity.lasting, sizeof(ret->identity.lasting), "%s", msg->backing.lasting);
}

struct worker_msg worker_store_message(const struct worker_store *store)
{
        return (struct worker_msg){
                .type = WORKER_MSG_BACKING,
                .backing = {.boot = (char *)store->identity.boot, /* only read */
                        .lasting = (char *)store->identity.lasting,
                            .basis = (int)store->identity.basis,
                            .is_disk = store->identity.is_disk,
                            .major = store->major,
                            .minor = store->minor,
                            .inode = store->inode,
                            .claimed = store->claimed},
        };
}
