/* SPDX-License-Identifier: MIT */
/* The driver's node for a device, /dev/ublkcN. */
#pragma once

/* Opens /dev as it is now, for later: the worker leaves the file systems in between. The descriptor, or
 * -errno. */
int device_node_prepare(void);

/* Opens the node of device `number` in the folder from device_node_prepare(). The descriptor, or -errno.
 * -EAGAIN: not yet; udev may still be making the node, or hold it open for a moment (a second opener is
 * refused). */
int device_node_open(int folder, int number);
