/* SPDX-License-Identifier: MIT */
/* The I/O timeout of a device's disk. */
#pragma once

#include "ublkd/reconcile/parts/device_timeout_part.h"
#include "ublkd/store/device_store.h"

#include <stdbool.h>

struct managed_device;

/* Note that the disk is about to go live. is_new: it had no requests before. Return whether its timeout will be set then, by
 * device_timeout_shorten(): the limits must not be in force meanwhile. */
bool device_timeout_await(struct managed_device *device, bool is_new);
/* Begin to shorten the timeout of a disk that has just gone live, if it is awaited. */
void device_timeout_shorten(struct managed_device *device, const struct device_record *record);
/* Note that the timeout was set, or report that it could not be, and have the limits be in force. error: 0 or -errno. */
void device_timeout_done(struct managed_device *device, const struct device_record *record, int error);
/* Return whether limits of the device are not in force yet. */
bool device_timeout_delays_limits(const struct managed_device *device, const struct device_record *record);
