/* SPDX-License-Identifier: MIT */
/* Judges a worker that an earlier ublkd has started. */
#pragma once

struct managed_device;

/* Kill a worker that was found and claims what was not written down for its disk. */
void device_judge_found(struct managed_device *device);
