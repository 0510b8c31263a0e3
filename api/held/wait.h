/* SPDX-License-Identifier: MIT */
/* Requests whose reply is held: with ?wait until their device is ready or gone, else until the view of the
 * host is fresh. The connection is suspended meanwhile and costs nothing. An event of the store, a timer or
 * the client's leaving resumes it. */
#pragma once

#include "api/http/request.h"

enum wait_kind {
        WAIT_READY,     /* or ublkd knows why it will not be */
        WAIT_RECOVERED, /* ready; a cause why it is not may be older than the request */
        WAIT_GONE,
        WAIT_HOST
};

/* Return whether the disk of the device is as its spec wants it; for a disabled device, whether it has
 * none. */
bool wait_is_ready(const struct device_record *record);

/* Set the reply if the wait is over already (ready: `status`, with the device); else suspend the
 * connection. */
void wait_begin(
        struct request *request, enum wait_kind kind, const struct device_record *record, unsigned status);

/* Suspend the request until wait_host_seen(), or for two seconds; then it runs again, with `host_seen`. On failure return
 * -errno and change nothing. */
int wait_begin_host(struct request *request);

/* Let the requests run that wait for a fresh view of the host, each in a turn of its own. */
void wait_host_seen(struct api *api);

/* Subscribe this to the store, with the api as userdata. */
void wait_on_store_event(void *userdata, const struct store_event *event);

/* Return how many requests wait. */
size_t wait_count(const struct api *api);
