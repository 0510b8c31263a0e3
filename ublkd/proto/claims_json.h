/* SPDX-License-Identifier: MIT */
/* The claims of a disk in PARAMS: "claims", an array, and the first of them once more as "claimKey",
 * "claimStart", "claimEnd" and "claimWrites", which is all that an older program sends and reads. */
#pragma once

#include "ublkd/backing/backing_claims.h"

#include <cjson/cJSON.h>

/* Add the claims to an object. Return false on ENOMEM. */
bool claims_json_add(cJSON *object, const struct backing_claims *claims);
/* Read the claims of an object. The caller clears *ret, also on failure. Return 0, -EBADMSG or -ENOMEM. */
int claims_json_read(const cJSON *object, struct backing_claims *ret);
