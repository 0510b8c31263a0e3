/* SPDX-License-Identifier: MIT */
/* The CPUs on which the kernel wants the queues of a disk to run, and the question for them. */
#pragma once

#include <stdint.h>

struct ublk_ctl;
struct ublk_ctl_call;

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
