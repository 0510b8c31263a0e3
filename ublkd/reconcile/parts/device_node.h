/* SPDX-License-Identifier: MIT */
/* What udev and users see of a device's disk beside its blocks: owner, mode and link of the node. */
#pragma once

#include "ublkd/store/device_store.h"

struct managed_device;

/* Private to device_node.c. */
struct device_node {
        uint64_t shown_generation; /* that owner, mode and link of the block node follow; 0: none */
};

/* Say what the node of a disk is to be called, before it appears. 1; 0: that was said before; -errno. */
int device_announce_node(const struct managed_device *device, const struct device_record *record);
/* Let owner, mode and link of a live disk's node follow the spec, if they do not yet. */
void device_show_node(struct managed_device *device, const struct device_record *record);
/* The node may not be as it was shown any more: it is shown again in the next turn. False: it was not shown. */
bool device_node_changed(struct managed_device *device);
/* Take back what was said of the node of a disk that is gone: its number may be another device's next. */
void device_hide_node(struct managed_device *device, const struct device_record *record);
