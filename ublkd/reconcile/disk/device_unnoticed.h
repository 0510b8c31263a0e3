/* SPDX-License-Identifier: MIT */
/* A disk that the driver shows as live, and whose queues no process has or can get: START_USER_RECOVERY is EBUSY for ever.
 *
 * A driver without a release hook on /dev/ublkcN (6.12) makes such a disk when another program stops or deletes it right
 * before START_DEV: it takes the queues from the worker, and START_DEV does not look (ublk_cancel_dev(),
 * ublk_ctrl_start_dev() in ublk_drv.c). Only STOP_DEV leads out. No worker has served the disk. */
#pragma once

#include <stdbool.h>

struct device_record;
struct managed_device;

/* Return whether the disk is one, after an EBUSY of START_USER_RECOVERY, and report that if so. False as long as the
 * driver may yet notice that the worker is dead. */
bool device_is_unnoticed(const struct managed_device *device, const struct device_record *record);
