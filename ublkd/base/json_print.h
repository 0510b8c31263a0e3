/* SPDX-License-Identifier: MIT */
/* JSON as text, in which a whole number is written as one: 1000000000000000 bytes, where cJSON writes 1e+15.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* As cJSON_PrintUnformatted() and cJSON_Print(). Owned by the caller, to be freed with free(3). NULL: out of
 * memory. */
char *json_print(const cJSON *value);
char *json_print_indented(const cJSON *value);

/* Adds an integer that may pass 2^53, in which cJSON keeps numbers, to the object. It is text for the printer
 * then, and no number for cJSON_IsNumber(). False: out of memory. */
bool json_add_integer(cJSON *object, const char *name, uint64_t value);
