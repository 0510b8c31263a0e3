/* SPDX-License-Identifier: MIT */
/* The control group of a device's worker, as far as it was asked for. */
#pragma once

#include "ublkd/cgroups/worker_groups.h"
#include "ublkd/model/reason.h"

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

/* Private to device_group.c; zeroed: no worker has been given a group. */
struct device_group {
        sd_event_source *timer;        /* NULL: no worker has served yet */
        struct group_request *request; /* NULL: none is under way */
        pid_t pid;                     /* of the worker that `asked` and `result` are about; 0: none */
        struct group_limits asked;
        bool answered;
        struct group_result result;  /* valid if `answered` */
        int events;                  /* the same: worker_groups_open_events(), owned */
        bool has_start;              /* there may be a start group */
        int start_kills;             /* of the OOM killer in the start group, at the last look */
        enum condition_reason shown; /* by the last event; REASON_NONE: none, or no limits */
};
