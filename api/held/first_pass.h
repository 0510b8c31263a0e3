/* SPDX-License-Identifier: MIT */
/* Requests that arrive before ublkd has looked at every device, such as the request that starts ublkd by its
 * socket. Until then ublkd knows only what the database says of a device, and nothing of its disk. So such a
 * request is suspended until the first pass is over. After a few seconds it runs anyway, and a device that is
 * still unseen has PHASE_UNKNOWN. */
#pragma once

#include "api/http/request.h"

/* Return whether the request can run now; for api->admit. False: it is suspended and runs again, or there is
 * a reply (out of memory). */
bool first_pass_admit(struct request *request);

/* Let the suspended requests run: the first pass is over. */
void first_pass_done(struct api *api);

/* Return how many requests are suspended for the first pass. */
size_t first_pass_count(const struct api *api);
