/* SPDX-License-Identifier: MIT */
/* Which way the bytes of a disk go, and why. Pure. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"

/* What the route of a new disk depends on, beside the kernel. */
struct data_route_wish {
        enum data_path path;    /* of the spec */
        enum data_path fastest; /* what its worker reports of the backing store; DATA_PATH_AUTO: nothing */
        unsigned queue_depth;
        bool may_batch; /* a restart may replay what is in flight: a disk in batches cannot be quiesced */
};

/* Choose the route of a new disk, by what was measured. features: the kernel's. A path that the client asked for and that
 * the kernel lacks is not replaced: the flags of the disk will show it. */
struct data_route device_route_choose(const struct data_route_wish *wish, uint64_t features);

/* Return a sentence that explains the route of a disk, for its status. fastest: DATA_PATH_AUTO if no worker
 * has reported it. */
const char *device_route_reason(
        enum data_path wanted, enum data_path fastest, const struct data_route *route);
