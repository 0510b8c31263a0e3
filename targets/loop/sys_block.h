/* SPDX-License-Identifier: MIT */
/* Block devices in /sys, by their number. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Read NAME of /sys/dev/block/MAJOR:MINOR as text. Return false if it cannot be read. */
bool sys_block_attribute(dev_t number, const char *name, char *text, size_t size);

/* Open the device's node below /dev, as the kernel has named it; the caller closes *ret. Return 0; -ENODEV:
 * there is no such device, or the node leads to another one; other -errno. */
int sys_block_open_node(dev_t number, int flags, int *ret);

/* Call `each` for every device that a disk is made of (dm, md, bcache), until it fails; not at all for a disk
 * that is made of none. number: not of a partition. Return 0, -errno, or what `each` returned. */
int sys_block_each_slave(dev_t number, int (*each)(void *userdata, dev_t slave), void *userdata);
