/* SPDX-License-Identifier: MIT */
/* Which paths a spec may name, by the policy of this ublkd. */
#pragma once

#include "api/http/request.h"

#include "ublkd/store/device_store.h"

/* Whether the policy allows the path of the spec's target, which is the one of `record` (NULL: a new device)
 * or another; a device that has it already keeps it. Read from the spec alone. False: there is a reply. */
bool path_is_allowed(
        struct request *request, const struct device_record *record, const struct device_spec *spec);
/* The path of the spec's target; NULL: the target has none. */
const char *spec_path(const struct device_spec *spec);
/* "warn" or "refuse". */
const char *path_policy_to_string(bool refuse);
