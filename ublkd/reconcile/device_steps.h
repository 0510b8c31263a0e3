/* SPDX-License-Identifier: MIT */
/* The steps: each is one change of the world. */
#pragma once

#include "ublkd/store/device_store.h"

struct managed_device;

/* Carry out device->action. Calls `done` exactly once: later, or before this returns; result is 0 or -errno. */
void device_steps_run(struct managed_device *device, const struct device_record *record,
        void (*done)(struct managed_device *device, int result));
