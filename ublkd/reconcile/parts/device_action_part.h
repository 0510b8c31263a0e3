/* SPDX-License-Identifier: MIT */
/* The action of a device that its worker was asked for. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

/* Private to device_action.c; zeroed: there is none. */
struct device_acting {
        uint64_t asked;  /* the action that a worker was asked for; 0: none */
        uint64_t worker; /* that worker, by when it was started */
        uint64_t
                asked_until; /* CLOCK_MONOTONIC, in µs: by then it has begun it, or ended the one before; 0: not known */
        uint64_t cancel_until; /* the same: by then it has ended it, as it was asked to; 0: it was not */
        uint64_t retry_at;     /* the same: the database failed, not before; 0: it did not */
        uint64_t server;       /* the worker that serves, by when it was started */
        uint64_t served_at;    /* CLOCK_MONOTONIC, in µs: since then */
        sd_event_source *timer;
};
