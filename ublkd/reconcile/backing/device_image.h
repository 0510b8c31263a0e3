/* SPDX-License-Identifier: MIT */
/* The image of a device whose target names a pool (ublkd/pools/): made before its first disk, grown before its worker is
 * asked to grow, deleted after its disk. A thread does the work, one job at a time for each device; turns go on
 * meanwhile, so that a file system that does not answer is not in the way of a recovery. */
#pragma once

#include "ublkd/reconcile/parts/device_image_part.h"

#include <stdbool.h>
#include <stdint.h>

struct device_record;
struct managed_device;

/* Prepare the image for a worker that makes a new disk: make it if there was no disk yet, else grow it to the size of the
 * spec. An image of an earlier disk that is missing or was cut off is left to the worker, which refuses it. Return 0: it
 * is ready, or the device has none; -EALREADY: a job is under way, and the device is woken after it; other -errno, which
 * is noted. */
int device_image_prepare(struct managed_device *device, const struct device_record *record);
/* Grow the image to `size` bytes, for a disk that is served. Return as above. */
int device_image_grow(struct managed_device *device, const struct device_record *record, uint64_t size);
/* Note that the image serves a disk of `size` bytes. */
void device_image_serves(struct managed_device *device, uint64_t size);
/* Delete the image of a device without a disk or a worker, unless it is to stay. Return true if the record may go; false:
 * the device is woken when it may, or is to ask again at device_image_due(). */
bool device_image_remove(struct managed_device *device, const struct device_record *record);
/* Return when device_image_remove() tries again (CLOCK_MONOTONIC); UINT64_MAX: it waits for no time. */
uint64_t device_image_due(const struct managed_device *device);
/* Free what it owns. The result of a job under way is dropped. */
void device_image_drop(struct managed_device *device);
