/* SPDX-License-Identifier: MIT */
/* Who uses disks /dev/ublkbN: processes that hold them (or their partitions) open or mapped, mounts in any
 * mount namespace, what the kernel has built on top (disk_stack.h), swap. Probes by udev do not count, nor do
 * files that are only called like a node. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stdbool.h>
#include <sys/types.h>

enum { DISK_USERS_MAX = 16 };

/* The process that is being looked at. */
struct disk_users_place {
        int pid; /* 0: none yet */
        char comm[32];
};

/* The first thing that could not be read. */
struct disk_users_gap {
        char text[192]; /* "the mounts of process 4211 (fio) cannot be read: Permission denied", or "" */
};

/* Where to look; for tests. */
struct disk_users_roots {
        const char *proc, *sys; /* "/proc", "/sys" */
        /* What a link below /proc leads to: 1, a block node with that device; 0, something else; -errno.
         * NULL: the kernel is asked. */
        int (*node)(int directory, const char *name, dev_t *ret);
        /* Whether two threads have the same descriptors. NULL: the kernel is asked. */
        bool (*shares_files)(pid_t one, pid_t other);
        /* Opens a disk exclusively: a descriptor or -errno. NULL: the kernel's, by its node. */
        int (*open_exclusively)(int number);
        const char *const *probers; /* udev's programs, ended by NULL. NULL: where systems have them */
        pid_t supervisor;           /* whose control helpers are no users; 0: nobody's */
        /* What a process serves, as a phrase, or false: nothing known. NULL: not known of any. */
        bool (*describe)(const void *userdata, pid_t pid, char *text, size_t size);
        const void *describe_userdata;
        struct disk_users_place *place; /* kept up while it looks; or NULL */
        struct disk_users_gap *gap;     /* set on failure; or NULL */
};

/* Who uses one disk. Each item is a phrase: "process 4211 (fio)", "mounted at /mnt". */
struct disk_users {
        int number;
        bool exclusively; /* where nobody is found, open it exclusively: the kernel refuses while somebody
                             holds it */
        char *items[DISK_USERS_MAX];
        size_t count;
        size_t dropped; /* there are more */
        int last_pid;   /* of the process that was added last; 0: none */
        bool mounted;   /* a mount is among them */
};

/* Reads /proc and /sys once for all disks, which can block behind a stuck process: see disk_search.h. Give
 * the numbers (and `exclusively`), each once, and nobody yet; it sorts the disks by number. Returns 0:
 * everything was looked at, and who was not found is not there; or -errno: something could not be read, so
 * that a disk without users may have some. What was found stays as well. What vanishes while it is looked at
 * is not there. */
int disk_users_find(const struct disk_users_roots *roots, struct disk_users *disks, size_t count);
