/* SPDX-License-Identifier: MIT */
/* The partitions of a device's disk: the scan under way, and what came of earlier ones. */
#pragma once

#include "ublkd/model/device_condition.h"
#include "ublkd/reconcile/view/partitions_due.h"

#include <stdint.h>
#include <systemd/sd-event.h>

struct managed_device;
struct partition_scan;

/* Private to device_partitions.c. */
struct device_partitions {
        struct partition_scan *scan; /* NULL: none yet */
        struct partitions_key key;   /* of the scan under way */
        uint64_t changes;            /* see struct partitions_key */
        struct partitions_history history;
        struct device_condition trouble;             /* of the last scan; absent: none */
        void (*left)(struct managed_device *device); /* waits for the disk to be closed; NULL: nothing does */
        sd_event_source *left_deadline;
};
