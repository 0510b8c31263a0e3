/* SPDX-License-Identifier: MIT */
/* PURE: reports a backing store without room for writes, or with little. */
#pragma once

#include "ublkd/model/device_condition.h"
#include "ublkd/paths/path_wire.h"
#include "ublkd/proto/region_space.h"

#include <stdbool.h>
#include <stdint.h>

/* The room below one backing file. */
struct store_room {
        struct path_room room;
        const char *place; /* the pointer of its path into the spec; NULL: the disk has no other store */
};

/* What is known of the room. */
struct space_facts {
        uint64_t full_since; /* a write found no room; 0: none did */
        bool waits;          /* writes that find no room wait for it */
        const struct store_room *rooms;
        unsigned count;
};

/* Write CONDITION_SPACE, or leave *ret untouched if the store has enough room. Return 0 or -ENOMEM. */
int space_condition(const struct space_facts *facts, struct device_condition *ret);
/* Write the event of a store that is full: its first sentence is the same for each request with the same fate. missed: the
 * first request that found no room; NULL: not known. The caller frees it. Return 0 or -ENOMEM. */
int space_explain_full(bool waits, const struct region_missed *missed, char **ret);
/* Write the sentence of a room that is low, which the caller frees. Return 0 or -ENOMEM. */
int space_explain_low(const struct store_room *store, char **ret);
