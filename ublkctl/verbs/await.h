/* SPDX-License-Identifier: MIT */
/* Waiting for devices, with a line of progress on a terminal. */
#pragma once

#include "ublkctl/client/call.h"

#include <cjson/cJSON.h>

struct watch {
        struct context *context;
        const char *name;
        const char *goal; /* "Live", "gone" */
        uint64_t began;   /* microseconds, monotonic */
        bool hopeless;    /* see watch_or_end() */
        bool gives_up;    /* see await_live() */
};

/* CLOCK_MONOTONIC, microseconds. */
uint64_t now_usec(void);

/* Zero, or the tick of a request that the daemon holds: shows how `watch->name` is doing. */
bool (*watch_tick(const struct context *context))(void *userdata);

/* The tick (of a struct watch) that also ends the request when no device can start on this machine as it is:
 * says why, and sets `hopeless`. */
bool watch_or_end(void *userdata);

/* After that: that the request is not taken back. */
void say_in_force(const char *name);

/* Waits until the device is ready (Live; Disabled when it shall be), or gone. A device that goes while it is
 * waited for to become ready is STATUS_NOT_FOUND. `deadline` as now_usec(). Says what is wrong. */
enum exit_status await_device(
        struct context *context, const char *name, enum wait_for goal, uint64_t deadline);

/* The same for Live, but gives up, with STATUS_FAILED, when no device can start on this machine as it is, or when
 * the store of this one is another than that of its disk.
 * `deadline`: settings.timeout after the first of those began that are waited for. */
enum exit_status await_live(struct context *context, const char *name, uint64_t deadline);

/* Whether the device of this answer is as it shall be. */
bool device_is_ready(const cJSON *device);

/* Whether one of its conditions has that reason. */
bool device_has_reason(const cJSON *device, const char *reason);

/* Its message about being ready, which says why it is not and what will be done; "" when there is none. */
const char *device_message(const cJSON *device);

/* Says what ublkd warns of where the path of the device may lead to another disk after a reboot. */
void warn_of_path(const char *about, const cJSON *device);

/* Says, about `about`, what went wrong with the last try of the device; its message where none has failed. False:
 * neither is known. */
bool say_why(const char *about, const cJSON *device);
