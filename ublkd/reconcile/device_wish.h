/* SPDX-License-Identifier: MIT */
/* What is wanted of a device. */
#pragma once

#include "ublkd/plan/plan.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Return what plan_want() takes, from the record and the facts of this turn. */
struct plan_wish device_wish(struct managed_device *device, const struct device_record *record, uint64_t now);
/* Return the driver's features that its disk can have: those of the host, without what the driver has left out
 * of an earlier ADD_DEV of this spec. */
uint64_t device_features(const struct managed_device *device);
