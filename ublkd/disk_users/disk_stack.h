/* SPDX-License-Identifier: MIT */
/* What the kernel has built on disks /dev/ublkbN or on their partitions: disks that are made of them (dm, md,
 * bcache), and what has them open as a backing file, of which the kernel tells no holder (loop, zram, the
 * targets of NVMe and SCSI). */
#pragma once

/* Calls `found` with the number of the disk and a phrase for each ("part of /dev/dm-0", "backing
 * /dev/loop0"), until it fails. sys: "/sys". 0, -errno, or what `found` returned. */
int disk_stack_find(
        const char *sys, int (*found)(void *userdata, int number, const char *phrase), void *userdata);
/* The same for file systems that the kernel has on a disk ("a file system (ext4) that no process has mounted
 * any more"): also one that was unmounted lazily while somebody writes to a file of it, and one in a mount
 * namespace without processes. Only of those that /sys/fs shows (ext4, xfs, btrfs, f2fs). */
int disk_stack_find_file_systems(
        const char *sys, int (*found)(void *userdata, int number, const char *phrase), void *userdata);
