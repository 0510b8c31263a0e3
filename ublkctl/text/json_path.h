/* SPDX-License-Identifier: MIT */
/* Reading answers: members by a dotted path ("status.worker.pid"). Pure. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

/* NULL: there is no such member. */
const cJSON *json_find(const cJSON *object, const char *path);
/* NULL: there is none, or it is no string. */
const char *json_text(const cJSON *object, const char *path);
/* The condition of this type that a device has, or NULL. */
const cJSON *json_condition(const cJSON *device, const char *type);
/* `fallback`: there is none, or it is no number. */
double json_number(const cJSON *object, const char *path, double fallback);
bool json_true(const cJSON *object, const char *path);
