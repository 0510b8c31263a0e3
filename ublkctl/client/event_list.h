/* SPDX-License-Identifier: MIT */
/* Fetch the events that ublkd keeps, and print them. */
#pragma once

#include "ublkctl/client/call.h"

#include <cjson/cJSON.h>

/* Fetch the events above revision `after`, oldest first, as an array that the caller deletes: of one device,
 * or of all (NULL); at most the newest `limit` (0: all). *ret_revision: where a stream resumes. `quiet`: do
 * not print the cause of a failure. */
enum exit_status fetch_events(struct context *context, const char *device, uint64_t after, size_t limit,
        bool quiet, cJSON **ret, uint64_t *ret_revision);

/* Print one line. `revision`: begin it with the revision, for --since. */
void print_event(const struct context *context, const cJSON *event, bool revision);

/* Print "Events:" and the newest events of the device, as part of describe, without those of an earlier
 * device of the name, which had another uid. Print nothing if this ublkd keeps no events. */
void print_device_events(struct context *context, const char *device, const char *uid);
