/* SPDX-License-Identifier: MIT */
/* Checks a worker that an earlier ublkd has started. */
#pragma once

struct managed_device;

/* Kill an adopted worker with claims, or another number of stores, than were written down for its disk. */
void device_judge_found(struct managed_device *device);
