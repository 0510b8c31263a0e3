/* SPDX-License-Identifier: MIT */
/* What the threads of a worker get to know of the machine and of the memory that they share with others,
 * found by the main thread before it leaves the host's files. */
#pragma once

#include <stdbool.h>

struct action_port;

struct shared {
        void *region;                /* from device_region_map() */
        bool ticks;                  /* from round_clock_has_ticks() */
        int news;                    /* an eventfd that wakes the main thread, or -1 */
        int pagemap;                 /* /proc/self/pagemap, opened without capabilities; or -1 */
        struct action_port *actions; /* orders for the first queue; NULL: the target has no verbs */
        int links[2];                /* sockets that only the main thread keeps, or -1 */
};
