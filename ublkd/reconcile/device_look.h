/* SPDX-License-Identifier: MIT */
/* When a turn needs no look at the kernel. On its way from a dead worker to a live disk ublkd asks the kernel once, before it
 * starts the next worker. What another program does to the disk after that, the control helper sees, which looks right before
 * START_USER_RECOVERY and END_USER_RECOVERY, and the turn after that asks. Each look less is two changes of processes less. */
#pragma once

#include "ublkd/plan/plan.h"

#include <stdbool.h>

struct device_record;
struct managed_device;

/* Return whether the control helper compares the disk before it sends the command of this step. */
bool device_command_looks(enum plan_action action);
/* Return whether the next turn may begin a recovery with the last answer of the kernel: the worker is ready to recover the
 * disk, and the answer is recent. record: of the device, with no request of the user that is newer than the answer. */
bool device_may_begin_unasked(const struct managed_device *device, const struct device_record *record);
/* The same of the end of a recovery that has begun. */
bool device_may_end_unasked(const struct managed_device *device);
