/* SPDX-License-Identifier: MIT */
/* The counters of devices. */
#pragma once

#include "ublkctl/client/call.h"

#include <cjson/cJSON.h>

/* GET /devices/NAME/stats of the devices named, or (count 0) of all, as an array that the caller deletes. Of
 * all devices those that have gone meanwhile, or that have no counters now, are left out. Says what is wrong;
 * with some counters (*ret is set) the status tells of the others. */
enum exit_status fetch_stats(struct context *context, int count, char *const names[], cJSON **ret);
