/* SPDX-License-Identifier: MIT */
/* One turn of a device. */
#pragma once

struct managed_device;

/* Begin a turn of a device whose record the store has. It may be gone when this returns. */
void device_turn_begin(struct managed_device *device);
/* It had its first pass, or goes without. */
void device_seen(struct managed_device *device);
