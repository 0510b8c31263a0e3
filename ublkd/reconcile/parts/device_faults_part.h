/* SPDX-License-Identifier: MIT */
/* The faults of a backing store, as far as they are known, reported and accepted. */
#pragma once

#include "ublkd/proto/region_faults.h"
#include "ublkd/proto/region_reports.h"

#include <stdbool.h>
#include <stdint.h>

/* Private to device_faults.c; zeroed it is empty. */
struct device_faults_seen {
        struct fault_report reports[_REGION_FAULT_MAX];  /* as read from its region last */
        struct region_report waiting[_REGION_FAULT_MAX]; /* their events, for the database */
        uint64_t quiet_until[_REGION_FAULT_MAX];         /* monotonic, usec: no event of this fault before */
        uint32_t epoch;                                  /* of that region */
        bool read_since_death;  /* since the last worker died, and none has been started since */
        uint32_t accepted_with; /* the restart whose faults were accepted, or that was refused; 0: none */
};
