/* SPDX-License-Identifier: MIT */
/* A request whose reply is held: with ?wait until its device is ready, or gone; else until the host was
 * looked at. The connection is suspended meanwhile and costs nothing; the store's events, a timer or the
 * client's leaving wake it. */
#pragma once

#include "api/http/request.h"

enum wait_kind {
        WAIT_READY,     /* or a reason why it will not be */
        WAIT_RECOVERED, /* ready; a reason why it is not may be older than the request */
        WAIT_GONE,
        WAIT_HOST
};

/* Whether its disk is as the spec wants it, or gone where the device is disabled. */
bool wait_is_ready(const struct device_record *record);

/* Sets the reply if it is known already (ready: `status` with the device), else suspends the connection. */
void wait_begin(
        struct request *request, enum wait_kind kind, const struct device_record *record, unsigned status);

/* Suspends the connection until api_host_seen(), or for two seconds; then `reply` sets the reply. */
void wait_begin_host(struct request *request, void (*reply)(struct request *request));

/* For the store: to be subscribed with the api as userdata. */
void wait_on_store_event(void *userdata, const struct store_event *event);

/* How many requests wait. */
size_t wait_count(const struct api *api);
