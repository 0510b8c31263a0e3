/* SPDX-License-Identifier: MIT */
/* What differs between two specs, field by field. Pure. */
#pragma once

#include <cjson/cJSON.h>

/* Calls `each` for every field (as a dotted path) that differs; a value that is absent on one side is taken
 * from the schema ("default"), or NULL. `schema`: of a device, or NULL; `target_schema`: of the new spec's
 * target, or NULL. Sizes and times are compared by their value ("1GiB" is 1073741824). Returns how many. */
unsigned spec_diff(const cJSON *old, const cJSON *new, const cJSON *schema, const cJSON *target_schema,
        void (*each)(void *userdata, const char *field, const cJSON *old, const cJSON *new), void *userdata);
