/* SPDX-License-Identifier: MIT */
/* PURE: whether a worker can serve a disk whose parameters the kernel froze when it was started (SET_PARAMS
 * is refused from then on). */
#pragma once

#include "ublkd/proto/worker_msg.h"

/* Return whether openers can rely on all that the disk has promised. `frozen`: the parameters with which the
 * disk was made; `now`: those of the worker. Their sizes are not compared: a disk grows. *ret_field: the
 * first parameter with which the worker falls short ("maxIoSize"), and *ret_frozen and *ret_now its values;
 * untouched if it does not. */
bool frozen_params_fit(const struct disk_params *frozen, const struct disk_params *now,
        const char **ret_field, uint64_t *ret_frozen, uint64_t *ret_now);
