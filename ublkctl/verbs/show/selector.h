/* SPDX-License-Identifier: MIT */
/* Selectors of devices by their labels: KEY=VALUE, which the API knows, and KEY!=VALUE. Pure. */
#pragma once

#include "ublkctl/client/settings.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

/* Return whether the selector is KEY=VALUE, for GET /devices?label=. */
bool selector_is_equality(const char *selector);

/* Return whether the device has no label that a selector KEY!=VALUE excludes. Selectors KEY=VALUE are left to the
 * API. */
bool selectors_match(const struct text_list *selectors, const cJSON *device);
