/* SPDX-License-Identifier: MIT */
/* How often the tenants change devices. Each account (a user, or all subordinate users of one range) may change so many in a
 * minute, all at once or spread: a bucket that fills up evenly. Pure. Private to api/. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { CHANGE_RATE_ACCOUNTS = 1024 };

/* Zero-initialise. Of more accounts at once than there are places, the one that has changed least loses its place. */
struct change_rate {
        struct {
                uint32_t account; /* its first uid */
                uint64_t full_at; /* when its bucket is full again */
        } of[CHANGE_RATE_ACCOUNTS];
        size_t used; /* places from the first one on that were ever used */
};

/* Take one change of `account` if `per_minute` (not 0) allows it. now: CLOCK_MONOTONIC, microseconds. Return 0; else after
 * how many microseconds one is allowed, and nothing is taken. */
uint64_t change_rate_take(struct change_rate *rate, uint32_t account, unsigned per_minute, uint64_t now);
