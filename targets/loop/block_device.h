/* SPDX-License-Identifier: MIT */
/* What the kernel reports of a block device. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct block_device {
        uint64_t size; /* bytes */
        uint32_t logical_block_size, physical_block_size, io_min, io_opt,
                discard_granularity; /* bytes; 0: unknown */
        uint64_t write_zeroes_max;   /* bytes; 0: the device has no such command */
        uint64_t discard_max;        /* bytes; 0: the device has no such command */
        bool read_only, rotational;
};

/* Read what the kernel reports of an open block device. number: the st_rdev of `fd`. Return 0 or -errno. */
int block_device_read(int fd, dev_t number, struct block_device *ret);

/* Find where the device lies: the disk that it is a partition of, or itself, and the byte of that disk at
 * which it begins. */
void block_device_place(dev_t number, dev_t *ret_disk, uint64_t *ret_start);

/* What a request to a disk may look like without being split or copied; 0: unknown. */
struct page_limits {
        uint32_t dma_alignment, max_segment_size; /* bytes */
        uint16_t max_segments;
};
/* Return the limits of the disk with `number`: of a device, or of a file system on it. */
struct page_limits block_device_page_limits(dev_t number);

/* Return whether the disk with `number` (of a device, or of a file system on it) has spinning platters; false
 * if that is unknown. */
bool block_device_is_rotational(dev_t number);
