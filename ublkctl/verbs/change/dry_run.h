/* SPDX-License-Identifier: MIT */
/* Show what a change would do, as far as that can be known without doing it. */
#pragma once

#include "ublkctl/client/call.h"

#include <cjson/cJSON.h>

/* Check `spec` against the rules of this program, which equal those of a ublkd of the same version. Return
 * STATUS_FAILED with every fault on stderr. It does not open the backing store. */
enum exit_status dry_run_check(const char *name, const cJSON *spec);

/* Print a line with the openers of the disk if the change from `device` (in the form of the API) to the valid
 * `spec` would remove or recreate the disk. Return STATUS_REFUSED if there are any. */
enum exit_status dry_run_report_disk(struct context *context, const cJSON *device, const cJSON *spec);
