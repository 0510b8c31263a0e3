/* SPDX-License-Identifier: MIT */
/* One search for the users of disks: what its parts share. Private to disk_users.c, disk_mounts.c,
 * disk_openers.c, disk_mappers.c, disk_late.c, disk_rights.c, disk_exclusive.c, disk_bystanders.c and
 * disk_container.c. Runs in the process of the search. */
#pragma once

#include "ublkd/disk_users/aside.h"
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

/* A process (or thread) that is read after all others. */
struct late {
        char pid[16], tid[16];
        bool has_rights; /* disk_rights_has() */
        unsigned uid;    /* its real user */
        size_t place;    /* in which it was found */
        size_t turn;     /* how many of that user were found before it */
};

struct late_list {
        struct late *items;
        size_t count, allocated;
};

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
        struct known_program helper; /* the control helper's */
        char user_namespace[32];     /* of this process; "": unknown */
        bool saw_init;               /* /proc shows processes of other users */
        int error;                   /* -errno of the first gap; 0: no gap */
        struct late_list late_mounts, late_openers, late_mappers;
        struct seen_set late_namespaces; /* as `namespaces`: in late_mounts */
        bool has_unread_mounts;          /* of processes without rights: an exclusive open must find them */
        uint64_t brief_from; /* in a pass over all processes, as monotonic_now(); look_first_share() */
        uint64_t mounts_until, openers_until, mappers_until; /* for processes that are read late, likewise */
        uint64_t reserve_usec;                               /* they get at least that much */
        uint64_t share_most_usec;                            /* one without rights gets at most that much */
        struct aside *aside;                                 /* for calls that may hang; NULL: none so far */
        unsigned hanging;                                    /* calls that hang */
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

/* Add a user, once for each phrase; uid: whose it is, or DISK_USER_UNKNOWN. Return 0 or -ENOMEM. */
int look_add_user(struct disk_users *disk, uid_t uid, const char *format, ...) _printf_(3, 4);

/* Return the user of the process, if that user may look at it by itself, as no program with other rights runs in it; root for
 * others; DISK_USER_UNKNOWN. */
uid_t look_uid_of(int process);

/* Return whether an error means that a process has exited. */
bool look_is_gone(int error);
/* Note a gap: `what` could not be read, so a disk without found users may have some. Only the first gap is kept.
 * Does nothing if `error` means that the process has exited. process: owner of `what`, or NULL. */
void look_note_gap(struct look *look, const struct process *process, const char *what, int error);

/* Fill in the name of a process. */
void look_read_comm(struct process *process);

/* Read a link into a string. Return its length, or -errno; -ENAMETOOLONG: it does not fit. */
ssize_t look_read_link(int directory, const char *name, char *text, size_t size);
/* Open a file or a directory below /proc/PID. Return NULL with errno on failure. */
FILE *look_open_file(int directory, const char *name);
DIR *look_open_directory(int directory, const char *name);

/* Return how much of a process is read before the others have been read: `most`, or little of it after the pass has
 * taken its time, so that not even many processes that have much each keep the search from the others. */
size_t look_first_share(const struct look *look, size_t most);

/* disk_mounts.c: add the mounts that a process (or thread) sees, once for every mount namespace. Each …_add()
 * returns 0 or -errno. */
int disk_mounts_add(struct look *look, const struct process *process);
/* disk_mounts.c: add the mounts of namespaces that have too many to be read at once. Return 1: some are unread. */
int disk_mounts_finish(struct look *look);
/* disk_mounts.c: add the swap areas. */
int disk_swaps_add(struct look *look);

/* disk_openers.c: add the disks that a process (or thread) has open, now or in _finish(), when all have been read. */
int disk_openers_add(struct look *look, const struct process *process);
int disk_openers_finish(struct look *look);
/* disk_openers.c: ask what a link of /proc leads to. Return 1: a block node, with its device; 0: another file; -errno. */
int disk_node_ask(int directory, const char *name, dev_t *ret);
/* disk_openers.c: find the disk that the caller asks about, or NULL, for what disk_node_ask() returned (`asked` and
 * `device`) of a link with the text `path`. Return 1: a file that is not a block node; 0; -errno. */
int disk_of_node(const struct look *look, int asked, dev_t device, const char *path, struct disk_users **ret);
/* disk_openers.c: add a process as a user, once. */
int disk_process_add(const struct look *look, struct disk_users *disk, const struct process *process);
/* disk_container.c: return whether the process is in a container, as far as that is known, and the user whose
 * container it is. */
bool disk_container_owner(const struct look *look, const struct process *process, uid_t *ret);
/* disk_container.c: add what a process does with the disk as a user, whose phrase names the container. Return 0 or
 * -ENOMEM. */
int disk_container_add_user(const struct look *look, struct disk_users *disk, const struct process *process,
        const char *format, ...) _printf_(4, 5);
/* disk_container.c: the same of a process of `uid` (or DISK_USER_UNKNOWN) in a container of `owner`. The owner may know of
 * it, also where the uid is a subordinate one of that user; but one that root has put there is root's. An unknown uid
 * counts as that of the owner, who has all rights in the user namespace. */
int disk_container_add_inner(struct disk_users *disk, uid_t uid, uid_t owner, const char *use);

/* disk_mappers.c: add the disks that are mapped into its memory, now or in _finish(). */
int disk_mappers_add(struct look *look, const struct process *process);
int disk_mappers_finish(struct look *look);

/* disk_rights.c: return whether the process could open one of the disks by itself; true also where that is not known.
 * ret_uid: its real user. */
bool disk_rights_has(const struct look *look, const struct process *process, unsigned *ret_uid);

/* Read a process (or thread) to the end. Return -ETIME if that is not possible until then (monotonic_now()). */
typedef int (*late_read)(struct look *look, const struct process *process, uint64_t until);
/* disk_late.c: remember a process. Return 0 or -ENOMEM. */
int late_add(struct look *look, struct late_list *list, const struct process *process);
/* disk_late.c: read all in the list until then, or for reserve_usec if that is later, and free it. `what` of a process
 * with rights that cannot be read is a gap; what there is no time for of one without rights is not. Those of a user wait
 * for one of each other user. Return 1 if a process was left out for that, or has exited; 0; or -errno. */
int late_finish(struct look *look, struct late_list *list, uint64_t until, late_read read, const char *what);

/* disk_exclusive.c: open the disk exclusively, and add a user if the kernel refuses. */
int disk_exclusive_add(const struct look *look, struct disk_users *disk);

/* disk_bystanders.c: read the programs that are recognised. */
void disk_bystanders_learn(struct look *look);
/* disk_bystanders.c: return whether the process has a disk open without using it: udev, which probes a new disk,
 * or the control helper of this ublkd, which holds a disk while it stops it. */
bool disk_bystander_is(const struct look *look, const struct process *process);
