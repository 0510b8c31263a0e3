/* SPDX-License-Identifier: MIT */
/* GET /host: what this machine can do, and what is wrong with it. */
#pragma once

#include "api/http/request.h"

/* Sets the reply. */
void reply_host(struct request *request);

/* Appends the conditions of devices that are False, Ready apart, to a JSON array of problems; a bounded
 * number of them. False: out of memory. */
bool host_add_devices(cJSON *problems, const struct device_store *store);
