/* SPDX-License-Identifier: MIT */
/* Refuse to shrink a disk without --allow-shrink, because that cuts off everything beyond its new end. */
#pragma once

#include "ublkctl/client/call.h"

#include <cjson/cJSON.h>

/* Return whether `size` would shrink the disk of `device` (in the form of the API; NULL: none). `size` is
 * from a spec or patch; NULL or null stands for the size of the target, which a disk never exceeds. Both
 * sizes, in bytes, in *ret_from and *ret_to. Pure. */
bool shrink_is_wanted(const cJSON *device, const cJSON *size, uint64_t *ret_from, uint64_t *ret_to);

/* Return STATUS_REFUSED, with a sentence on stderr, if the disk would shrink and --allow-shrink is not
 * given. */
enum exit_status check_shrink(
        const struct context *context, const char *name, const cJSON *device, const cJSON *size);
