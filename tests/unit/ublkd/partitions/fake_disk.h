/* SPDX-License-Identifier: MIT */
/* A disk without a kernel: an image, and a folder in the place of /sys whose partitions a step changes. */
#pragma once

#include "ublkd/partitions/disk_partitions.h"

/* The reader and writer of all disks of a test. What is private to a disk is found by its number. */
extern const struct disk_partitions_roots fake_disk_roots;

/* Create the folders. */
void fake_disk_begin(void);
void fake_disk_end(void);
/* Create disk N with an image that holds the table of a script for sfdisk; NULL: without a table. */
void fake_disk_add(int number, const char *script);
/* Change the size of its image, in sectors. */
void fake_disk_resize(int number, unsigned sectors);
/* Have every open of the disk hang. */
void fake_disk_hang(int number);
/* Show a partition. */
void fake_disk_show(int number, const struct partition *partition);
/* Have the kernel refuse to delete this partition of any disk, from now on; 0: none. */
void fake_disk_use(uint32_t number);
/* Return what is shown as text, "1@8+8 2@16+8", in the order of numbers. */
const char *fake_disk_shown(int number);
