/* SPDX-License-Identifier: MIT */
/* Which way the bytes of a disk go, and why. Pure. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"

/* Choose the route of a new disk. wanted: from the spec; fastest: what its worker reports of the backing
 * store; may_batch: batches pay, and a restart may replay what is in flight (a disk in batches cannot be
 * quiesced); features: the kernel's. A path that the client asked for and that the kernel lacks is not
 * replaced: the flags of the disk will show it. */
struct data_route device_route_choose(
        enum data_path wanted, enum data_path fastest, bool may_batch, uint64_t features);

/* Return whether requests of a queue that is `queue_depth` deep come together often enough to be worth
 * batches. */
bool device_route_batches_pay(unsigned queue_depth);

/* Return a sentence that explains the route of a disk, for its status. fastest: DATA_PATH_AUTO if no worker
 * has reported it. */
const char *device_route_reason(
        enum data_path wanted, enum data_path fastest, const struct data_route *route);
