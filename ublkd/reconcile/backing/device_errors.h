/* SPDX-License-Identifier: MIT */
/* Reports the requests of a disk that failed (proto/region_errors.h): in the status, as a condition, and as events of
 * bounded number. */
#pragma once

#include "ublkd/model/io_errors.h"
#include "ublkd/proto/region_reports.h"
#include "ublkd/store/device_store.h"

#include <systemd/sd-event.h>

struct managed_device;

/* Private to device_errors.c; zeroed: no request has failed. */
struct device_errors {
        struct io_errors seen;               /* as read from its region last */
        uint64_t quiet_until[_STATS_OP_MAX]; /* no event of that operation before; CLOCK_MONOTONIC */
        uint64_t others[_STATS_OP_MAX];      /* requests that failed with another errno than ENOSPC */
        uint64_t others_reported[_STATS_OP_MAX];
        struct region_report waiting[_STATS_OP_MAX]; /* their events, for the database */
        bool are_known;                              /* others_reported */
        sd_event_source *timer;                      /* of the next look; NULL: none was needed yet */
};

/* Read the errors out of the region of a device, and report new ones; also kept memory that is lost. */
void device_errors_read(struct managed_device *device);
/* Free what it owns. */
void device_errors_drop(struct managed_device *device);
/* Return the newest errors, for the status. */
const struct io_errors *device_errors_list(const struct managed_device *device);
/* Write the condition for device_publish.c, or leave *ret untouched if there is nothing to report. Return 0 or -ENOMEM. */
int device_errors_condition(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
