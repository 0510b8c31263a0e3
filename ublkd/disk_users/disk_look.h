/* SPDX-License-Identifier: MIT */
/* One search for the users of disks: what its parts share. Private to disk_users.c, disk_mounts.c,
 * disk_openers.c, disk_exclusive.c and disk_bystanders.c. Runs in the process of the search. */
#pragma once

#include "ublkd/disk_users/disk_users.h"
#include "ublkd/disk_users/seen_set.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/types.h>

/* The file of a program that is recognised. */
struct known_program {
        dev_t device;
        ino_t inode;
};

/* The device of a disk or of a partition. */
struct disk_device {
        dev_t device;
        int number; /* N of /dev/ublkbN */
};

enum { KNOWN_PROGRAMS_MAX = 8 };

struct look {
        const struct disk_users_roots *roots;
        struct disk_users *disks; /* by number */
        size_t disk_count;
        struct disk_device *devices; /* of the disks that the kernel lists, and of their partitions */
        size_t device_count;
        struct seen_set
                namespaces; /* with mounts that were read: inode, and 0 or the tid with a root of its own */
        struct seen_set files; /* mapped files that are not block nodes: device, inode */
        struct known_program probers[KNOWN_PROGRAMS_MAX];
        size_t prober_count;
        struct known_program self; /* this program */
        char user_namespace[32];   /* of this process; "": unknown */
        bool saw_init;             /* /proc shows processes of other users */
        int error;                 /* -errno of the first gap; 0: no gap */
};

/* A process of /proc, or a thread of one. */
struct process {
        const char *pid; /* of the process */
        const char *tid; /* of the thread */
        char comm[32];
        int directory; /* /proc/PID, or /proc/TID */
};

/* Compare two struct disk_users by number; for bsearch() and qsort(). */
int disk_users_compare(const void *one, const void *other);
/* Return the entry of a disk; NULL: the caller did not ask about it, or the number is -1. */
struct disk_users *look_find_disk(const struct look *look, int number);
/* Return the entry of the disk named by the last part of a path, as look_find_disk() does. */
struct disk_users *look_find_disk_of_path(const struct look *look, const char *path);

/* Add a user, once for each phrase. Return 0 or -ENOMEM. */
int look_add_user(struct disk_users *disk, const char *format, ...) _printf_(2, 3);

/* Return whether an error means that a process has exited. */
bool look_is_gone(int error);
/* Note a gap: `what` could not be read, so a disk without found users may have some. Only the first gap is kept.
 * Does nothing if `error` means that the process has exited. process: owner of `what`, or NULL. */
void look_note_gap(struct look *look, const struct process *process, const char *what, int error);

/* Read a link into a string. Return its length, or -errno; -ENAMETOOLONG: it does not fit. */
ssize_t look_read_link(int directory, const char *name, char *text, size_t size);
/* Open a file or a directory below /proc/PID. Return NULL with errno on failure. */
FILE *look_open_file(int directory, const char *name);
DIR *look_open_directory(int directory, const char *name);

/* disk_mounts.c: add the mounts that a process (or thread) sees, once for every mount namespace. Each …_add()
 * returns 0 or -errno. */
int disk_mounts_add(struct look *look, const struct process *process);
/* disk_mounts.c: add the swap areas. */
int disk_swaps_add(struct look *look);

/* disk_openers.c: add the disks that a process (or thread) has open. */
int disk_openers_add(struct look *look, const struct process *process);
/* disk_openers.c: add the disks that are mapped into its memory. */
int disk_mappers_add(struct look *look, const struct process *process);

/* disk_exclusive.c: open the disk exclusively, and add a user if the kernel refuses. */
int disk_exclusive_add(const struct look *look, struct disk_users *disk);

/* disk_bystanders.c: read the programs that are recognised. */
void disk_bystanders_learn(struct look *look);
/* disk_bystanders.c: return whether the process has a disk open without using it: udev, which probes a new disk,
 * or the control helper of this ublkd, which holds a disk while it stops it. */
bool disk_bystander_is(const struct look *look, const struct process *process);
