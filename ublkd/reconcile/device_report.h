/* SPDX-License-Identifier: MIT */
/* How the facts of a turn are told to the user. */
#pragma once

#include "ublkd/store/device_store.h"

struct managed_device;

/* Make the record's status from the facts of this turn. next_try: CLOCK_MONOTONIC, or UINT64_MAX. Returns 0 or
 * -errno. */
int device_report(const struct managed_device *device, const struct device_record *record, uint64_t next_try);
