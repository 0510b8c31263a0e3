/* SPDX-License-Identifier: MIT */
/* Whether the path of a device's spec may lead to another disk after the next boot. */
#pragma once

#include "ublkd/store/device_store.h"

struct managed_device;

/* CONDITION_STABLE_PATH, as the worker sees it. 0 or -ENOMEM. */
int device_stable_path(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
/* Make it an event when it is about to become what it was not. */
void device_stable_path_tell(const struct managed_device *device, const struct device_condition *before,
        const struct device_condition *now);
