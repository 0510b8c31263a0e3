/* SPDX-License-Identifier: MIT */
/* The de-duplicating queue of devices that are due for a turn. */
#pragma once

struct managed_device;
struct reconciler;

/* Take the device that is due next, or NULL. */
struct managed_device *reconciler_queue_pop(struct reconciler *reconciler);
/* The device gets no turn, if one was due. */
void reconciler_queue_remove(struct managed_device *device);
/* Something happened to the device; it gets a turn. */
void device_wake(struct managed_device *device);
