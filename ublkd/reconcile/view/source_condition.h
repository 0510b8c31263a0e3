/* SPDX-License-Identifier: MIT */
/* PURE: whether the file that owns a device is applied to it. */
#pragma once

#include "ublkd/store/device_record.h"

/* Write CONDITION_SOURCE, or leave *ret untouched if no file owns the device. Return 0 or -ENOMEM. */
int source_condition(const struct device_record *record, struct device_condition *ret);
