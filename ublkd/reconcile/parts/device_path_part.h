/* SPDX-License-Identifier: MIT */
/* The watched paths of a device's spec. */
#pragma once

#include "ublkd/paths/path_watch.h"

#include <stdbool.h>

struct managed_device;

/* The path of one store. */
struct watched_path {
        struct managed_device *device;
        unsigned number;           /* of the store among those of the device */
        struct path_watch *watch;  /* NULL: the store is unknown, or has no path */
        enum path_state announced; /* by the last event; UNKNOWN: none was needed yet */
        char *place;               /* with a list of stores: "/target/children/1/path"; else NULL */
        bool low; /* there was an event that the room below its file is low, and none of its end */
};

/* Private to device_path.c. Zeros: empty, as long as there is no disk. */
struct device_path {
        struct watched_path *paths; /* one for each store of the device, which do not move */
        unsigned count;
};
