/* SPDX-License-Identifier: MIT */
/* Wait for devices, with a line of progress on a terminal. */
#pragma once

#include "ublkctl/client/call.h"
#include "ublkd/base/clock.h"

#include <cjson/cJSON.h>

struct watch {
        struct context *context;
        const char *name;
        const char *goal; /* "Live", "gone" */
        uint64_t began;   /* microseconds, monotonic */
        bool host_down;   /* see watch_or_end() */
        bool fail_fast;   /* see await_live() */
        bool announced;   /* what the wait is for */
};

/* Return the tick of a request that the daemon holds (see struct request), which shows the state of
 * `watch->name`; NULL without a terminal. */
bool (*watch_tick(const struct context *context))(void *userdata);

/* Show the state as watch_tick() (userdata is a struct watch), and also end the request if no device can
 * start on this machine: then print the cause and set `host_down`. Return false to end it. */
bool watch_or_end(void *userdata);

/* Print that the request stays in force, after watch_or_end() has ended it. */
void print_in_force(const char *name);

/* Wait until the device is ready (Live; Disabled if it is disabled), or gone. If it disappears while it
 * should become ready: STATUS_NOT_FOUND. `deadline` in the time of monotonic_now(). Print at once, on stderr, which openers
 * it waits for, and how long at most. On failure print the cause. */
enum exit_status await_device(
        struct context *context, const char *name, enum wait_for goal, uint64_t deadline);

/* Wait as await_device() until the device is Live. Give up, with STATUS_FAILED, if no device can start on
 * this machine, or if the store of this device is not the one of its disk. `deadline`: settings.timeout after
 * the wait for the first of all devices began. */
enum exit_status await_live(struct context *context, const char *name, uint64_t deadline);

/* Return whether the device of this answer is ready. */
bool device_is_ready(const cJSON *device);

/* Return whether one of its conditions has that reason. */
bool device_has_reason(const cJSON *device, const char *reason);

/* Return its message of Ready, which explains why it is not ready and what ublkd does next; "" if it has
 * none. */
const char *device_message(const cJSON *device);

/* Return the node of the disk that the owner of the device opens: the private one of a tenant, else /dev/ublkbN. NULL:
 * without a disk. */
const char *device_node(const cJSON *device);

/* Print ublkd's warning if the path of the device may lead to another disk after a reboot. */
void warn_of_path(const char *about, const cJSON *device);

/* Print, about `about`, why the last attempt of the device failed, or else the message of Ready. False:
 * neither is known. */
bool print_why(const char *about, const cJSON *device);

/* Return how long ublkd holds an answer if a client wants to wait for `usec` microseconds. */
uint64_t wait_limit(uint64_t usec);

/* Print "?wait=ready&timeout=…" into `ret`, with "?"; "" if `wait` is false. Cut a longer time to the
 * daemon's limit. */
enum { WAIT_QUERY_SIZE = 64 };
void wait_query(const struct context *context, bool wait, const char *what, char ret[static WAIT_QUERY_SIZE]);
