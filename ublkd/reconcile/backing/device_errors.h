/* SPDX-License-Identifier: MIT */
/* Reports the requests of a disk that failed (proto/region_errors.h): in the status, as a condition, and as events of
 * bounded number. */
#pragma once

#include "ublkd/model/io_errors.h"
#include "ublkd/reconcile/parts/device_errors_part.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Read the errors out of the region of a device, and report new ones; also kept memory that is lost. */
void device_errors_read(struct managed_device *device);
/* Free what it owns. */
void device_errors_drop(struct managed_device *device);
/* Return the newest errors, for the status. */
const struct io_errors *device_errors_list(const struct managed_device *device);
/* Write the condition for device_publish.c, or leave *ret untouched if there is nothing to report. Return 0 or -ENOMEM. */
int device_errors_condition(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
