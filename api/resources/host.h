/* SPDX-License-Identifier: MIT */
/* GET /host: what this machine supports, and its problems. */
#pragma once

#include "api/http/request.h"

/* Add `sockets`, the Unix sockets that ublkd listens on. Return false on ENOMEM. */
bool host_add_sockets(cJSON *object, const struct api *api);

/* Add `socketGroup`, the setting and whether it is in effect. Return false on ENOMEM. */
bool host_add_socket_group(cJSON *policy, const struct api *api);

/* Append the False conditions of devices, except Ready, to a JSON array of problems, up to a limit. Return
 * false on ENOMEM. */
bool host_add_devices(cJSON *problems, const struct device_store *store);
