/* SPDX-License-Identifier: MIT */
/* The driver's node for a device, /dev/ublkcN. */
#pragma once

/* Open /dev as it is now, for later: the worker leaves the file systems in between. Return the descriptor or
 * -errno. */
int device_node_prepare(void);

/* Open the node of device `number` in the folder from device_node_prepare(). Return the descriptor or -errno.
 * -EAGAIN: try again later; udev may still be making the node, or hold it open for a moment (the driver
 * refuses a second opener). */
int device_node_open(int folder, int number);
