/* SPDX-License-Identifier: MIT */
/* A disk that becomes smaller: what is beyond its new end is cut off, so that has to be asked for. */
#pragma once

#include "ublkctl/client/call.h"

#include <cjson/cJSON.h>

/* Whether the disk of `device` (as the API gives it; NULL: there is none) would become smaller with `size`,
 * the one of a spec or of a patch (NULL, or null: what the target has, which a disk never exceeds). Both
 * sizes, in bytes, in *ret_from and *ret_to. Pure. */
bool shrink_is_wanted(const cJSON *device, const cJSON *size, uint64_t *ret_from, uint64_t *ret_to);

/* STATUS_REFUSED, with a sentence on stderr, when the disk would become smaller and there is no
 * --allow-shrink. */
enum exit_status check_shrink(
        const struct context *context, const char *name, const cJSON *device, const cJSON *size);
