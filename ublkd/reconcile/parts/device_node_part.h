/* SPDX-License-Identifier: MIT */
/* What the node of a device's disk has, and whether udev has seen the disk. */
#pragma once

#include <stdint.h>

/* Private to device_node.c. */
struct device_node {
        uint64_t shown_generation; /* of the spec whose owner, mode and link the node has; 0: none */
        uint64_t
                udev_deadline; /* CLOCK_MONOTONIC: until then a new disk waits for udev; 0: it does not wait */
};
