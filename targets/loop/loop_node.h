/* SPDX-License-Identifier: MIT */
/* What a loop device of the kernel lies in. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct loop_backing {
        dev_t disk;        /* the block device that it is on; 0: it is on a file */
        dev_t device;      /* of the file system of the file */
        uint64_t inode;    /* of the file */
        uint64_t start;    /* bytes */
        uint64_t size_max; /* bytes; 0: to the end */
        bool read_only;
};

/* Return whether the block device is a loop device, or a partition of one. */
bool is_loop_device(dev_t number);
/* Ask the kernel what the loop device is on. Return 0; -ENXIO: it is on nothing; other -errno. */
int loop_node_read(dev_t number, struct loop_backing *ret);
/* Open the file that the loop device is on with O_PATH, by the name that the kernel has of it. The caller
 * closes *ret. Return 0; -ENOENT: that name leads to another file, or to none; other -errno. */
int loop_node_open_file(dev_t number, const struct loop_backing *backing, int *ret);
