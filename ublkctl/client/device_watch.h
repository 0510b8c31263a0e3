/* SPDX-License-Identifier: MIT */
/* Wait for events of a device, instead of polling it. */
#pragma once

#include "ublkctl/client/context.h"

#include <stdint.h>

struct device_watch;

/* Return NULL on ENOMEM. `name` must outlive the result. device_watch_free() takes NULL and returns NULL. */
struct device_watch *device_watch_new(struct context *context, const char *name);
struct device_watch *device_watch_free(struct device_watch *watch);

/* Return after an event of the device since the previous call (the first call returns at once), or after
 * `usec`. A caller that reads the device before each call misses no event. If the daemon offers this client
 * no events, return early and often. `tick` as in struct request. */
void device_watch_await(
        struct device_watch *watch, uint64_t usec, bool (*tick)(void *userdata), void *userdata);
