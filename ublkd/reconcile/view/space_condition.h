/* SPDX-License-Identifier: MIT */
/* PURE: reports a backing store without room for writes. */
#pragma once

#include "ublkd/model/device_condition.h"

#include <stdbool.h>
#include <stdint.h>

/* Write CONDITION_SPACE, or leave *ret untouched if the store has room. full_since: 0: it has. waits: writes that find
 * no room wait for it. Return 0 or -ENOMEM. */
int space_condition(uint64_t full_since, bool waits, struct device_condition *ret);
