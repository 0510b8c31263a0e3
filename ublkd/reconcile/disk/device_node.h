/* SPDX-License-Identifier: MIT */
/* The node of a device's disk: its owner, mode and link. */
#pragma once

#include "ublkd/store/device_store.h"

struct managed_device;

/* Private to device_node.c. */
struct device_node {
        uint64_t shown_generation; /* of the spec whose owner, mode and link the node has; 0: none */
};

/* Announce owner, mode and link to udev, before the node appears. Return 1; 0: announced before; or
 * -errno. */
int device_announce_node(const struct managed_device *device, const struct device_record *record);
/* Set owner, mode and link of a live disk's node as in the spec, if they differ. */
void device_show_node(struct managed_device *device, const struct device_record *record);
/* Set the node again in the next turn: a program may have changed it. Return false if it was not set yet. */
bool device_node_changed(struct managed_device *device);
/* Remove the announcement for a removed disk: another device may get its number. */
void device_hide_node(struct managed_device *device, const struct device_record *record);
