/* SPDX-License-Identifier: MIT */
/* Whether the backing store has room for writes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Private to device_space.c; as read from its region last. */
struct device_space {
        uint64_t full_since; /* its store has no room; CLOCK_REALTIME; 0: it has */
        bool has_ended;      /* an episode that was reported; at that read it had room again */
        bool waits;          /* writes wait for it then */
};
