/* SPDX-License-Identifier: MIT */
/* Undo a growth that failed: a command that fails changes nothing. */
#pragma once

#include "ublkctl/client/call.h"

#include <cjson/cJSON.h>

/* Call after a PATCH of `patch` was accepted and then failed. Put the size of `before` (the device before the
 * PATCH) back into the spec, if the patch changed only the size, the device was Live with the old size, and
 * no client has changed it since. Wait until it is Live again, and print why the growth failed and what was
 * done. False: did nothing. */
bool growth_take_back(struct context *context, const char *name, const cJSON *before, const cJSON *patch);
