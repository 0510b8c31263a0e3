/* SPDX-License-Identifier: MIT */
/* What a removal of a device would do, which also shows who uses its disk now. */
#pragma once

#include "ublkctl/client/call.h"

#include <cjson/cJSON.h>

/* Ask the daemon what a removal of the device would do: *ret is the answer to DELETE
 * ?dryRun=true&force=true&drop-last-copy=true, which the caller deletes. On failure print the cause, unless `quiet`. */
enum exit_status removal_foresee(struct context *context, const char *name, bool quiet, cJSON **ret);
/* Return whether only that disk has its data. */
bool removal_loses_data(const cJSON *foreseen);
/* Return the openers of that disk, or why they are unknown; NULL: none. */
const char *removal_users(const cJSON *foreseen);
