/* What the kernel has built on disks /dev/ublkbN or on their partitions: disks that are made of them (dm, md,
 * bcache), and what has them open as a backing file, of which the kernel tells no holder (loop, zram, the
 * targets of NVMe and SCSI). */
#pragma once

/* Calls `found` with the number of the disk and a phrase for each ("part of /dev/dm-0", "backing
 * /dev/loop0"), until it fails. sys: "/sys". 0, -errno, or what `found` returned. */
int disk_stack_find(
        const char *sys, int (*found)(void *userdata, int number, const char *phrase), void *userdata);
