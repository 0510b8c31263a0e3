/* SPDX-License-Identifier: MIT */
/* One look at who uses disks: what its parts share. Private to disk_users.c, disk_mounts.c, disk_openers.c
 * and disk_bystanders.c. */
#pragma once

#include "ublkd/disk_users/disk_users.h"
#include "ublkd/disk_users/seen_set.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/types.h>

/* A program of udev, by its file. */
struct known_program {
        dev_t device;
        ino_t inode;
};

/* The number of a disk or of a partition. */
struct disk_device {
        dev_t device;
        int number; /* N of /dev/ublkbN */
};

enum { KNOWN_PROGRAMS_MAX = 8 };

struct look {
        const struct disk_users_roots *roots;
        struct disk_users *disks; /* by number */
        size_t disk_count;
        struct disk_device *devices; /* of the disks that the kernel shows, and of their partitions */
        size_t device_count;
        struct seen_set
                namespaces;    /* whose mounts were read: inode, and 0 or who read from a root of its own */
        struct seen_set files; /* that are mapped and are no block nodes: device, inode */
        struct known_program probers[KNOWN_PROGRAMS_MAX];
        size_t prober_count;
        struct known_program self; /* this program */
        char user_namespace[32];   /* of this process; "": not known */
        bool saw_init;             /* /proc shows processes of others */
        int error;                 /* of the first thing that could not be read, -errno; 0: none */
};

/* A process of /proc, or a thread of one. */
struct process {
        const char *pid; /* of the process */
        const char *tid; /* of the thread */
        char comm[32];
        int directory; /* /proc/PID, or /proc/TID */
};

/* Two of struct disk_users, by number; for bsearch() and qsort(). */
int disk_users_compare(const void *one, const void *other);
/* NULL: nobody asks about it, or it is no disk (-1). */
struct disk_users *look_find_disk(const struct look *look, int number);
/* The same for the last part of a path. */
struct disk_users *look_find_disk_of_path(const struct look *look, const char *path);

/* Adds a user, once for each phrase. 0 or -ENOMEM. */
int look_add_user(struct disk_users *disk, const char *format, ...) _printf_(2, 3);

/* Whether an error means that a process has ended. */
bool look_is_gone(int error);
/* Something that was needed could not be read, so that nobody found does not mean nobody there: keeps the
 * first. `process`: whose it is, or NULL. What is gone is no such thing: then it does nothing. */
void look_note_gap(struct look *look, const struct process *process, const char *what, int error);

/* The text of a link, as a string. Its length; -errno, -ENAMETOOLONG when it does not fit. */
ssize_t look_read_link(int directory, const char *name, char *text, size_t size);
/* Opens a file or a directory below /proc/PID. NULL: errno says why. */
FILE *look_open_file(int directory, const char *name);
DIR *look_open_directory(int directory, const char *name);

/* disk_mounts.c: the mounts that a process (or thread) sees, once for every mount namespace. */
int disk_mounts_add(struct look *look, const struct process *process);
/* disk_mounts.c: the disks that are swapped to. */
int disk_swaps_add(struct look *look);

/* disk_openers.c: the disks that a process (or thread) has open. */
int disk_openers_add(struct look *look, const struct process *process);
/* disk_openers.c: the disks that are mapped into its memory. */
int disk_mappers_add(struct look *look, const struct process *process);

/* disk_exclusive.c: whether the kernel lets a disk be opened exclusively. 0 or -errno. */
int disk_exclusive_add(const struct look *look, struct disk_users *disk);

/* disk_bystanders.c: learns who is to be recognised. */
void disk_bystanders_learn(struct look *look);
/* disk_bystanders.c: whether what a process has open is no use of a disk: udev that looks what is on a new
 * disk, and ublkd's own control helper, which holds a disk while it stops it. */
bool disk_bystander_is(const struct look *look, const struct process *process);
