/* SPDX-License-Identifier: MIT */
/* Check the targets of a spec against the settings of this ublkd. */
#pragma once

#include "api/http/request.h"

#include "ublkd/store/device_store.h"

/* Return whether this ublkd allows the targets of the spec; else it has replied. It allows a target for tests that the device
 * has already, also with other rules: it creates no disk of that, and the rules of one that exists have to end. record: what
 * the device is, or NULL. */
bool targets_are_allowed(
        struct request *request, const struct device_record *record, const struct device_spec *spec);
