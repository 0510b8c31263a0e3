/* SPDX-License-Identifier: MIT */
/* The partitions of a device's disk: the scan under way, and what came of earlier ones. */
#pragma once

#include "ublkd/model/device_condition.h"
#include "ublkd/reconcile/view/partitions_due.h"

#include <stdint.h>
#include <systemd/sd-event.h>

struct managed_device;
struct partition_scan;

/* In what two troubles can differ: two that are equal are one piece of news. */
struct partition_trouble {
        enum condition_reason reason;
        int number, error; /* of the disk; of the scan or of the first change that was refused */
        int fault;         /* enum partition_fault */
        uint32_t partition;
        bool shown, cut_off, more; /* more: further changes were refused */
};

/* Private to device_partitions.c. */
struct device_partitions {
        struct partition_scan *scan; /* NULL: none yet */
        struct partitions_key key;   /* of the scan under way */
        uint64_t changes;            /* see struct partitions_key */
        struct partitions_history history;
        struct device_condition trouble;             /* of the last scan; absent: none */
        struct partition_trouble reported;           /* the same, to compare */
        void (*left)(struct managed_device *device); /* waits for the disk to be closed; NULL: nothing does */
        sd_event_source *left_deadline;
};
