/* SPDX-License-Identifier: MIT */
/* JSON as text, in which a whole number is written as one: 1000000000000000 bytes, where cJSON writes 1e+15.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* Print as cJSON_PrintUnformatted() and cJSON_Print(). Return a text that the caller frees with free(3), or
 * NULL on ENOMEM. */
char *json_print(const cJSON *value);
char *json_print_indented(const cJSON *value);

/* Add an integer that may pass 2^53, in which cJSON keeps numbers, to the object. Beyond that it is text for
 * the printer, and no number for cJSON_IsNumber(). Return false on ENOMEM. */
bool json_add_integer(cJSON *object, const char *name, uint64_t value);

/* Add a text to the object; NULL: null. Return false on ENOMEM. */
bool json_add_text(cJSON *object, const char *name, const char *text);
