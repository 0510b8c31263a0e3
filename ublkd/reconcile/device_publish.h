/* SPDX-License-Identifier: MIT */
/* A device's status: made from what a turn has seen, and stored. */
#pragma once

#include "ublkd/store/device_store.h"

struct managed_device;

/* Make the record's status, and store it. next_try: CLOCK_MONOTONIC, or UINT64_MAX. Returns 0 or -errno. */
int device_publish(
        const struct managed_device *device, const struct device_record *record, uint64_t next_try);
