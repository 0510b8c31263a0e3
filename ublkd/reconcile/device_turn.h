/* SPDX-License-Identifier: MIT */
/* One turn of a device. */
#pragma once

struct managed_device;

/* Begin a turn of a device with a record. May free the device. */
void device_turn_begin(struct managed_device *device);
/* Note that the device has had its first pass, or will not get one. */
void device_seen(struct managed_device *device);
/* The timer of the device fires: report the status if the step takes long, else queue a turn. */
void device_turn_timer(struct managed_device *device);
