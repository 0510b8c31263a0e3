/* SPDX-License-Identifier: MIT */
/* Plain requests of a target_host, on the way that the worker's queues have for those of a disk that lies in one file as it is, and for
 * those of a tree of maps whose bytes lie in one file: by the rules and the moves of targets/worker/queue/plain.h, without a callback of the target. What becomes of their completions is done here
 * as queue_requests.c does it. */
#pragma once

#include "targets/worker/queue/plain.h"
#include "tests/target/target_host.h"
#include "tests/unit/loop_driver.h"

/* A plain request: the caller's, until `ended` is called. */
struct host_plain {
        struct driver_plain driver; /* first */
        struct ublksrv_io_desc descriptor;
        struct target_io io;
        const struct target_host *host;
        void (*ended)(struct host_plain *plain,
                int result); /* set by the caller; may be called before the beginning returns */
};

/* Return whether the core moves the bytes of plain requests of the disk by itself. */
bool host_plain_is_there(const struct target_host *host);
/* Perform a request on the plain way. `io` has its queue, and is a read or a write of at most HOST_DATA_SIZE. Return true: `ended` was
 * called, or will be by loop_turn(); false: the request is not plain, or finds no room in the ring, and nothing was done. */
bool host_plain_begin(struct target_host *host, struct host_plain *plain, const struct target_io *io);
