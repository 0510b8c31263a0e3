/* SPDX-License-Identifier: MIT */
/* PURE: whether the path of a device's spec may lead to another disk after the next boot. */
#pragma once

#include "ublkd/plan/plan.h"
#include "ublkd/proto/worker_msg.h"
#include "ublkd/store/device_store.h"

/* Write CONDITION_STABLE_PATH from the parameters of the worker (NULL: not reported), or leave *ret untouched
 * if it does not apply to the device. Return 0 or -ENOMEM. */
int stable_path_condition(const struct device_record *record, const struct disk_params *params,
        enum plan_kernel kernel, struct device_condition *ret);
