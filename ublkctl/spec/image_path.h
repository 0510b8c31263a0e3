/* SPDX-License-Identifier: MIT */
/* The path of an image, which ublkd adds to a spec with a pool: for a comparison with what is stored. Pure. */
#pragma once

#include <cjson/cJSON.h>

/* Copy `spec` as ublkd would store it for a device with the spec `stored` (NULL: a new device): with its path, if both name
 * the same pool. Return the copy, which the caller deletes; NULL on ENOMEM. */
cJSON *image_path_carry(const cJSON *spec, const cJSON *stored);
