/* SPDX-License-Identifier: MIT */
/* The worker of a device, as device_worker.c keeps it. */
#pragma once

#include "ublkd/proto/device_region.h"
#include "ublkd/reconcile/view/user_request.h"
#include "ublkd/workers/worker_proc.h"

/* Whether a device has a worker, and had one. */
enum worker_state {
        WORKER_NONE,    /* NULL: none was started or found */
        WORKER_UNKNOWN, /* NULL: a worker may exist that could not be adopted yet */
        WORKER_HELD,
        WORKER_KILLED, /* by ublkd, and not reaped yet */
        WORKER_DEAD,   /* NULL: it died */
};

/* Written by device_worker.c alone. Others may read which worker there is, `state`, `lost_since` and the
 * history. */
struct device_process {
        struct worker_proc *worker;
        enum worker_state state;
        struct user_request request; /* that it was started for; all 0 for one that was found */
        uint64_t size;               /* options.size of that spec */
        bool kill_reported;          /* the kill and its cause are reported already */
        bool reported_channel;       /* that it closed its channel and serves on */
        bool hung; /* it served, hung and was killed for that: its death begins a recovery */
        uint64_t
                down_since; /* CLOCK_MONOTONIC: the driver shows that its disk is down since then; 0: it does not */
        uint64_t lost_since; /* CLOCK_MONOTONIC: its disk's I/O waits since then; 0: it does not */
        uint64_t died_at;    /* CLOCK_MONOTONIC: ublkd saw the last serving worker dead; 0: recovered since */
        struct region_history history; /* as in its region, which keeps it for the next supervisor */
};
