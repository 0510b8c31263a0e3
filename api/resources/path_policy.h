/* SPDX-License-Identifier: MIT */
/* Check the path of a spec against the policy of this ublkd. */
#pragma once

#include "api/http/request.h"

#include "ublkd/store/device_store.h"

/* Return whether the policy allows the path in `spec`; else it has replied. A device keeps the path that
 * `record` (NULL: a new device) already has. Reads the spec only, not the file system. */
bool path_is_allowed(
        struct request *request, const struct device_record *record, const struct device_spec *spec);
/* Return "warn" or "refuse". */
const char *path_policy_to_string(bool refuse);
