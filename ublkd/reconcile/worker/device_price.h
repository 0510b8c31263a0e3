/* SPDX-License-Identifier: MIT */
/* What the death of a device's worker costs. */
#pragma once

#include "ublkd/plan/progress.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Return what the death of the worker that serves would cost, by the spec and by the requests that wait. The record has
 * a spec. */
struct progress_price device_price_of_death(
        const struct managed_device *device, const struct device_record *record);
