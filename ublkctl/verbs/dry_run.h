/* SPDX-License-Identifier: MIT */
/* What a change would come to, as far as can be told without making it. */
#pragma once

#include "ublkctl/client/call.h"

#include <cjson/cJSON.h>

/* Checks `spec` by the rules of this program, which are those of the ublkd of the same version: STATUS_FAILED
 * with every fault on stderr. What only opening the backing store can tell is not checked. */
enum exit_status dry_run_check(const char *name, const cJSON *spec);

/* Prints a line when going from `device` (as the API gives it) to `spec`, which is a good one, takes the disk
 * away or makes it anew, with those who use it: STATUS_REFUSED while somebody does. */
enum exit_status dry_run_tell_of_disk(struct context *context, const cJSON *device, const cJSON *spec);
