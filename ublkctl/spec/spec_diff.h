/* SPDX-License-Identifier: MIT */
/* Compare two specs, field by field. Pure. */
#pragma once

#include <cjson/cJSON.h>

/* Call `each` for every field that differs, as a dotted path. A value that is absent on one side comes from
 * the "default" of the schema, or is NULL. `schema`: of a device, or NULL; `target_schema`: of the new spec's
 * target, or NULL. Sizes and times are compared by value ("1GiB" equals 1073741824). Return the number of
 * fields. */
unsigned spec_diff(const cJSON *old, const cJSON *new, const cJSON *schema, const cJSON *target_schema,
        void (*each)(void *userdata, const char *field, const cJSON *old, const cJSON *new), void *userdata);
