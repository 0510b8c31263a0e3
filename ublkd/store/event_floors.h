/* SPDX-License-Identifier: MIT */
/* Up to which revision the events of single accounts were dropped, because they had too many. Pure. */
#pragma once

#include "ublkd/model/tenant.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EVENT_FLOORS_MAX = 64 };

struct event_floor {
        char account[TENANT_SIZE]; /* as in an event */
        uint64_t revision;         /* all events of the account up to it are gone */
};

/* Zero-initialise. */
struct event_floors {
        struct event_floor of[EVENT_FLOORS_MAX];
        size_t count;
};

/* Return the floor of `account`; 0: there is none. */
uint64_t event_floors_get(const struct event_floors *floors, const char *account);
/* Return the highest floor of the accounts that count (NULL: all); 0: there is none. */
uint64_t event_floors_highest(const struct event_floors *floors, bool (*counts)(const char *account));

/* Raise the floor of `account`. Return 0; without a place for it, the lowest floor, which is given up: the caller has to
 * drop the events of all owners up to it. */
uint64_t event_floors_raise(struct event_floors *floors, const char *account, uint64_t revision);

/* Remove the floors up to `compacted`: the events of all owners up to it are gone. */
void event_floors_pass(struct event_floors *floors, uint64_t compacted);
