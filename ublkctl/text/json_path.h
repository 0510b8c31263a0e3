/* SPDX-License-Identifier: MIT */
/* Read answers: members by a dotted path ("status.worker.pid"). Results belong to the object. Pure. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

/* Return the member; NULL: none. */
const cJSON *json_find(const cJSON *object, const char *path);
/* Return the string; NULL: no member, or not a string. */
const char *json_text(const cJSON *object, const char *path);
/* Return the path of the backing store in the spec of a device, also of a target that stands below others; NULL: none. */
const char *json_store_path(const cJSON *device);
/* Return the condition of this type of a device; NULL: none. */
const cJSON *json_condition(const cJSON *device, const char *type);
/* Return the number; `fallback`: no member, or not a number. */
double json_number(const cJSON *object, const char *path, double fallback);
bool json_true(const cJSON *object, const char *path);
