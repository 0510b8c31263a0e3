/* SPDX-License-Identifier: MIT */
/* Finds the users of disks /dev/ublkbN and of their partitions: processes that have them open or mapped, mounts
 * in any mount namespace, swap, and what the kernel has built on top (disk_stack.h). Probes by udev do not count,
 * nor do files that only have the name of a node. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { DISK_USERS_MAX = 16 };

#define DISK_USER_UNKNOWN ((uid_t) - 1)

/* The process that the search reads now. */
struct disk_users_place {
        int pid; /* 0: none yet */
        char comm[32];
};

/* The first thing that could not be read. */
struct disk_users_gap {
        char text[192]; /* "the mounts of process 4211 (fio) cannot be read: Permission denied", or "" */
};

/* Where to read; tests replace it. */
struct disk_users_roots {
        const char *proc, *sys; /* "/proc", "/sys" */
        /* Resolve a link below /proc: 1, a block node with that device; 0, another file; -errno. NULL: ask the
         * kernel. */
        int (*node)(int directory, const char *name, dev_t *ret);
        /* Whether two threads share their descriptors. NULL: ask the kernel. */
        bool (*shares_files)(pid_t one, pid_t other);
        /* Open a disk exclusively: a descriptor or -errno. NULL: open its node. */
        int (*open_exclusively)(int number);
        const char *const *probers; /* udev's programs, ended by NULL. NULL: the usual paths */
        pid_t supervisor;           /* its control helpers do not count as users; 0: none */
        const char *helper;         /* the program of its control helpers. NULL: the one that runs */
        pid_t keeper; /* the service manager, which keeps descriptors of the supervisor; 0: none */
        /* Write what a process serves as a phrase; false: unknown. NULL: unknown for every process. */
        bool (*describe)(const void *userdata, pid_t pid, char *text, size_t size);
        const void *describe_userdata;
        const char *nodes;  /* has a link MAJOR:MINOR to the node of each device. NULL: /dev/block */
        uint64_t time_usec; /* after that, processes that are large or hang are not waited for; 0: 7 s */
        struct disk_users_place *place; /* updated during the search; or NULL */
        struct disk_users_gap *gap;     /* set on failure; or NULL */
};

/* What its users are, for the advice to end the use. The advice must not be to end the worker of a device that
 * lies on the disk, or ublkd, which keeps the store of that device open. */
enum disk_user_kind {
        DISK_USER_PROCESS = 1 << 0, /* neither of those */
        DISK_USER_DEVICE = 1 << 1,  /* a device of ublkd */
};

/* The users of one disk. Each item is a phrase: "process 4211 (fio)", "mounted at /mnt". */
struct disk_users {
        int number;
        bool exclusively; /* without found users, open it exclusively: the kernel refuses while the disk
                             is held */
        char *items[DISK_USERS_MAX];
        uid_t uids
                [DISK_USERS_MAX]; /* of each item: the user of the process, or of one that sees the mount; DISK_USER_UNKNOWN */
        size_t count;
        size_t dropped; /* users that are not in the list */
        int last_pid;   /* of the last added process; 0: none */
        bool mounted;   /* a mount is among them */
        bool by_ublkd;  /* the supervisor has it open: an item only where no device is one */
        bool by_keeper; /* the keeper has it open: an item only where neither ublkd nor a device is one */
        char keeper_comm[32];
        unsigned kinds; /* enum disk_user_kind, of all */
};

/* Read /proc and /sys once for all disks. This can block behind a stuck process: see disk_search.h. The caller
 * fills in the numbers (each once) and `exclusively`, without users; the call sorts the disks by number. Return
 * 0: the lists of users are complete; or -errno: something could not be read, and a disk may have more users
 * than were found. A process that exits during the search does not count, nor what a process hides behind thousands of
 * descriptors or mappings, or a locked memory, if it could not open the disk itself. */
int disk_users_find(const struct disk_users_roots *roots, struct disk_users *disks, size_t count);
