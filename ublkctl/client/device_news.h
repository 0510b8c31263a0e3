/* SPDX-License-Identifier: MIT */
/* Being woken by what happens to a device, so that nobody has to ask again and again. */
#pragma once

#include "ublkctl/client/context.h"

#include <stdint.h>

struct device_news;

/* NULL: out of memory. `name` must outlive it; NULL is fine to free. */
struct device_news *device_news_new(struct context *context, const char *name);
struct device_news *device_news_free(struct device_news *news);

/* Returns once something has happened to the device since the call before (the first one returns at once), or
 * after `usec`. Whoever looks at the device before each call misses nothing that is an event. Where the
 * daemon offers no events, or none to this client, it returns early and often. `tick` as in struct request.
 */
void device_news_await(struct device_news *news, uint64_t usec, bool (*tick)(void *userdata), void *userdata);
