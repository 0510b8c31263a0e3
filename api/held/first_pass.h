/* SPDX-License-Identifier: MIT */
/* Requests that come before ublkd has looked at every device, as the one that starts it by its socket. What
 * is known of a device is then what the database says, and nothing of its disk: such a request is suspended
 * until the first pass is over, and its handler runs then. After a few seconds it runs all the same, and a
 * device that was not looked at is told to be so (PHASE_UNKNOWN). */
#pragma once

#include "api/http/request.h"

/* Whether the request can be carried out now; for api->admit. False: it is suspended and runs again, or there
 * is a reply (out of memory). */
bool first_pass_admit(struct request *request);

/* How many requests are suspended for that. */
size_t first_pass_count(const struct api *api);
