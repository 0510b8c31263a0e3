/* SPDX-License-Identifier: MIT */
/* Numbers that may pass 2^53 travel as decimal strings, because JSON numbers are doubles. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* Add a number as a decimal string. Return false on ENOMEM. */
bool json_add_u64(cJSON *object, const char *name, uint64_t value);
/* Read such a string. item: NULL, or of any type. Return 0, or -EBADMSG: it is not such a string. */
int json_read_u64(const cJSON *item, uint64_t *ret);
