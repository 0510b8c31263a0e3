/* SPDX-License-Identifier: MIT */
/* Whether the requests of a disk end, as far as ublkd has looked. */
#pragma once

#include "ublkd/plan/progress.h"

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

/* Private to device_progress.c; zeroed: nothing is looked at. */
struct device_progress {
        sd_event_source *timer; /* NULL: no worker has served yet */
        uint64_t patience;      /* that it was set for */
        bool watched;           /* the worker of `memory` serves */
        struct progress_memory memory;
        enum progress shown;
        uint64_t shown_since; /* CLOCK_REALTIME, microseconds */
        /* A worker that did not know of its requests was killed when so many had ended. Another one that does not know
         * of them either is not to blame. */
        bool was_unaware;
        uint64_t unaware_ended;
};
