/* What the kernel has built on /dev/ublkbN or on one of its partitions: disks that are made of it (dm, md,
 * bcache), and what has it open as a backing file, of which the kernel tells no holder (loop, zram, the
 * targets of NVMe and SCSI). */
#pragma once

/* Calls `found` with a phrase for each ("part of /dev/dm-0", "backing /dev/loop0"), until it fails. sys:
 * "/sys"; disk: "ublkb0". 0, -errno, or what `found` returned. */
int disk_stack_find(
        const char *sys, const char *disk, int (*found)(void *userdata, const char *phrase), void *userdata);
