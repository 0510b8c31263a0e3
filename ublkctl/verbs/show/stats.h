/* SPDX-License-Identifier: MIT */
/* Fetch the counters of devices. */
#pragma once

#include "ublkctl/client/call.h"

#include <cjson/cJSON.h>

/* Fetch GET /devices/NAME/stats of the devices named, or (count 0) of all, as an array that the caller
 * deletes. Of all devices, leave out those that are gone meanwhile or have no counters. On failure print the
 * cause. If *ret is set, it has the counters that could be read, and the status concerns the others. */
enum exit_status fetch_stats(struct context *context, int count, char *const names[], cJSON **ret);
