/* SPDX-License-Identifier: MIT */
/* PURE: reports a backing store without room for writes, or with little. */
#pragma once

#include "ublkd/model/device_condition.h"
#include "ublkd/paths/path_wire.h"

#include <stdbool.h>
#include <stdint.h>

/* What is known of the room. */
struct space_facts {
        uint64_t full_since; /* a write found no room; 0: none did */
        bool waits;          /* writes that find no room wait for it */
        struct path_room room;
};

/* Write CONDITION_SPACE, or leave *ret untouched if the store has enough room. Return 0 or -ENOMEM. */
int space_condition(const struct space_facts *facts, struct device_condition *ret);
/* Write the sentence of a room that is low, which the caller frees. Return 0 or -ENOMEM. */
int space_explain_low(const struct path_room *room, char **ret);
