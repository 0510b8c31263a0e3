/* SPDX-License-Identifier: MIT */
/* Notices that the driver releases a disk whose worker has died: that is when its recovery can begin. The driver reports it to
 * no one, so ublkd asks it now and then; but most of the time /dev/ublkcN is closed by the death, which is an event. */
#pragma once

#include "ublkd/reconcile/parts/device_release_part.h"

struct device_record;
struct managed_device;

/* Watch for the release of a disk whose worker is dead, and for no other. Call it in each turn, after plan_want(). */
void device_release_follow(struct managed_device *device, const struct device_record *record);
/* Free what device_release_follow() has begun. */
void device_release_drop(struct managed_device *device);
