/* SPDX-License-Identifier: MIT */
/* Finds what the kernel has built on disks /dev/ublkbN or on their partitions: disks that contain them (dm, md,
 * bcache), and objects that have them open as a backing file without a holder in /sys (loop, zram, the targets of
 * NVMe and SCSI). Blocks: call it in a separate process. */
#pragma once

/* Call `found` with the number of the disk and a phrase ("part of /dev/dm-0", "backing /dev/loop0") for each,
 * until it fails. sys: "/sys". Return 0, -errno, or the failure of `found`. */
int disk_stack_find(
        const char *sys, int (*found)(void *userdata, int number, const char *phrase), void *userdata);
/* Call `found`, as disk_stack_find() does, for file systems that the kernel has on a disk ("a file system
 * (ext4) that no process has mounted any more"). This finds also one that was unmounted lazily while a
 * process writes to a file of it, and one in a mount namespace without processes. Only types that /sys/fs
 * lists (ext4, xfs, btrfs, f2fs). */
int disk_stack_find_file_systems(
        const char *sys, int (*found)(void *userdata, int number, const char *phrase), void *userdata);
