/* SPDX-License-Identifier: MIT */
/* The step ADD_DEV. */
#pragma once

#include "ublkd/store/device_store.h"

struct managed_device;

/* Carry out ACTION_ADD_DEV, with a number if the device has none. */
void device_step_add(struct managed_device *device, const struct device_record *record);
