/* SPDX-License-Identifier: MIT */
/* The node of a device's disk: its owner, mode and link. */
#pragma once

#include "ublkd/store/device_store.h"

struct managed_device;

/* Private to device_node.c. */
struct device_node {
        uint64_t shown_generation; /* that owner, mode and link of the block node follow; 0: none */
};

/* Announce owner, mode and link to udev, before the node appears. Return 1; 0: announced before; or -errno. */
int device_announce_node(const struct managed_device *device, const struct device_record *record);
/* Set owner, mode and link of a live disk's node as in the spec, if they differ. */
void device_show_node(struct managed_device *device, const struct device_record *record);
/* The node may not be as it was shown any more: it is shown again in the next turn. False: it was not shown. */
bool device_node_changed(struct managed_device *device);
/* Remove the announcement for a removed disk: another device may get its number. */
void device_hide_node(struct managed_device *device, const struct device_record *record);
