/* SPDX-License-Identifier: MIT */
/* The CPUs on which the kernel wants the queues of a disk to run. ublkd asks once, when it creates the disk: the
 * block layer's map of the queues does not change after that. So a recovery needs no question. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/reconcile/parts/device_cpus_part.h"

#include <stdint.h>

/* Ask for the CPUs of the `queues` queues of /dev/ublkbN, unless they are known. Then call `then`, possibly before
 * this returns, with 0, or -errno: the kernel has not answered, and they are unknown. */
void device_cpus_learn(struct device_cpus *cpus, struct ublk_ctl *ctl, int number, uint16_t queues,
        void (*then)(void *userdata, int result), void *userdata);
/* Drop the CPUs of a removed disk, and cancel a question under way. */
void device_cpus_drop(struct device_cpus *cpus);
