/* SPDX-License-Identifier: MIT */
/* Makes the status of a device from the view of a turn, and stores it. */
#pragma once

#include "ublkd/store/device_store.h"

struct managed_device;

/* Make the status and store it. next_try: CLOCK_MONOTONIC, or UINT64_MAX. Return 0 or -errno. */
int device_publish(
        const struct managed_device *device, const struct device_record *record, uint64_t next_try);
