/* SPDX-License-Identifier: MIT */
/* A disk that could not get the size that was asked for: a command that fails changes nothing. */
#pragma once

#include "ublkctl/client/call.h"

#include <cjson/cJSON.h>

/* After a PATCH of `patch` was accepted and then failed: puts the size of `before` (the device as it was)
 * back into the spec, if the size is all that the patch changed, the device was Live with the old one, and
 * nobody has changed it since. Waits until it is Live again. Says why it failed, and what was done; false:
 * nothing of that. */
bool growth_take_back(struct context *context, const char *name, const cJSON *before, const cJSON *patch);
