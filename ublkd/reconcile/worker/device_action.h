/* SPDX-License-Identifier: MIT */
/* The action that a client has started on a device: asks its worker for it, follows it, and stores its end. */
#pragma once

#include "ublkd/reconcile/parts/device_action_part.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Follow the action of a device, if one is under way: of one that is served, or that rests without a worker. Writes to the
 * database at the beginning and at the end of an action, and not right after a recovery: other disks may still wait for
 * theirs. */
void device_action_follow(struct managed_device *device, const struct device_record *record, bool served);
/* Free what it owns. */
void device_action_drop(struct managed_device *device);
