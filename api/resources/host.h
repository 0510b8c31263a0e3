/* SPDX-License-Identifier: MIT */
/* GET /host: what this machine supports, and its problems. */
#pragma once

#include "api/http/request.h"

/* Set the reply from the present view of the host. */
void reply_host(struct request *request);

/* Append the False conditions of devices, except Ready, to a JSON array of problems, up to a limit. Return
 * false on ENOMEM. */
bool host_add_devices(cJSON *problems, const struct device_store *store);
