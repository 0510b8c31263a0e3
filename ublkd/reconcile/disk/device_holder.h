/* SPDX-License-Identifier: MIT */
/* Who has the queues of a disk that waits for its recovery: a worker that is dead, but not yet all its requests; or no process.
 *
 * A driver without a release hook on /dev/ublkcN (6.12) learns that a worker is dead from the commands that the worker has
 * waiting. When these were taken from it before the disk goes live, there are none: by STOP_DEV or DEL_DEV of another program,
 * or because it died right then (ublk_cancel_dev(), ublk_ctrl_start_dev() in ublk_drv.c). The disk is live in the driver, and
 * stays so; no recovery can begin, and only STOP_DEV leads out. */
#pragma once

struct device_record;
struct managed_device;

/* Look, if the recovery has waited for long, and report a disk whose queues no process has or can get. Nothing is noted as
 * long as the driver may yet notice the death. */
void device_look_for_holder(struct managed_device *device, const struct device_record *record);
