/* SPDX-License-Identifier: MIT */
/* The events that ublkd keeps, and how one is printed. */
#pragma once

#include "ublkctl/client/call.h"

#include <cjson/cJSON.h>

/* The kept events above revision `after`, the oldest first, as an array that the caller deletes: of one
 * device, or of all (NULL). At most the newest `limit` (0: all). *ret_revision: where a stream goes on.
 * `quiet`: a failure is not told. */
enum exit_status fetch_events(struct context *context, const char *device, uint64_t after, size_t limit,
        bool quiet, cJSON **ret, uint64_t *ret_revision);

/* One line; `revision`: with that at its begin, for --since. */
void print_event(const struct context *context, const cJSON *event, bool revision);

/* "Events:" and the newest of them, as part of describe; not those of an earlier device of the name, which
 * had another uid. Nothing when this ublkd keeps none. */
void print_device_events(struct context *context, const char *device, const char *uid);
