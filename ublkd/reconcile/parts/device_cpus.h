/* SPDX-License-Identifier: MIT */
/* Where the kernel wants the queues of a disk to run: asked once, when the disk is made, for the block
 * layer's map of its queues never changes after that. A recovery then takes no question. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"

#include <stdint.h>

/* `text` may be read, the rest is private to device_cpus.c. Zeroed, nothing is known. */
struct device_cpus {
        char *text;             /* as in GO: "0-1;2-3"; NULL: not known. Owned */
        uint16_t known, queues; /* how many queues are in `text`, and how many the disk has */
        int number;
        struct ublk_ctl *ctl;
        struct ublk_ctl_call *call; /* NULL: none is under way */
        void (*then)(void *userdata, int result);
        void *userdata;
};

/* Make known where the `queues` queues of /dev/ublkbN shall run, unless it is known. Then call `then`, perhaps
 * before this returns: 0; -errno: the kernel does not say, and nothing is known. */
void device_cpus_learn(struct device_cpus *cpus, struct ublk_ctl *ctl, int number, uint16_t queues,
        void (*then)(void *userdata, int result), void *userdata);
/* The next disk is another one; a question that is under way is given up. */
void device_cpus_forget(struct device_cpus *cpus);
