/* SPDX-License-Identifier: MIT */
/* The requests of a disk that failed, as far as they are known and reported. */
#pragma once

#include "ublkd/model/io_errors.h"
#include "ublkd/proto/region_reports.h"

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

/* Private to device_errors.c; zeroed: no request has failed. */
struct device_errors {
        struct io_errors seen;               /* as read from its region last */
        uint64_t quiet_until[_STATS_OP_MAX]; /* no event of that operation before; CLOCK_MONOTONIC */
        uint64_t others[_STATS_OP_MAX];      /* requests that failed with another errno than ENOSPC */
        uint64_t others_reported[_STATS_OP_MAX];
        struct region_report waiting[_STATS_OP_MAX]; /* their events, for the database */
        bool are_known;                              /* others_reported */
        sd_event_source *timer;                      /* of the next look; NULL: none was needed yet */
};
