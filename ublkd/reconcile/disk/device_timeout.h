/* SPDX-License-Identifier: MIT */
/* The I/O timeout of a device's disk. */
#pragma once

#include "ublkd/store/device_store.h"

struct managed_device;

/* Shorten the timeout of a disk that has just gone live. */
void device_timeout_shorten(const struct managed_device *device, const struct device_record *record);
/* Report that the timeout of the disk could not be set. error: -errno. */
void device_timeout_failed(
        const struct managed_device *device, const struct device_record *record, int error);
