/* SPDX-License-Identifier: MIT */
/* The CPUs on which the kernel wants the queues of a disk to run. ublkd asks once, when it creates the disk: the
 * block layer's map of the queues does not change after that. So a recovery needs no question. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"

#include <stdint.h>

/* Other files may read `text`; the rest is private to device_cpus.c. Zeros: unknown. */
struct device_cpus {
        char *text;             /* as in GO: "0-1;2-3"; NULL: unknown. Owned */
        uint16_t known, queues; /* number of queues in `text`, and of the disk */
        int number;
        struct ublk_ctl *ctl;
        struct ublk_ctl_call *call; /* NULL: none is under way */
        void (*then)(void *userdata, int result);
        void *userdata;
};

/* Ask for the CPUs of the `queues` queues of /dev/ublkbN, unless they are known. Then call `then`, possibly before
 * this returns, with 0, or -errno: the kernel has not answered, and they are unknown. */
void device_cpus_learn(struct device_cpus *cpus, struct ublk_ctl *ctl, int number, uint16_t queues,
        void (*then)(void *userdata, int result), void *userdata);
/* Drop the CPUs of a removed disk, and cancel a question under way. */
void device_cpus_drop(struct device_cpus *cpus);
