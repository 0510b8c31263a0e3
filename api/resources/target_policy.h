/* SPDX-License-Identifier: MIT */
/* Check the targets of a spec against the settings of this ublkd. */
#pragma once

#include "api/http/request.h"

#include "ublkd/model/device_spec.h"

/* Return whether this ublkd allows the targets of the spec; else there is a reply. */
bool targets_are_allowed(struct request *request, const struct device_spec *spec);
