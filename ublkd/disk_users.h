/* Who uses disks /dev/ublkbN: processes that hold them (or their partitions) open or mapped, mounts in any
 * mount namespace, what the kernel has built on top (disk_stack.h), swap. Probes by udev do not count, nor do
 * files that are only called like a node. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stdbool.h>

enum { DISK_USERS_MAX = 16 };

/* The process that is being looked at. */
struct disk_users_place {
        int pid; /* 0: none yet */
        char comm[32];
};

/* Where to look; for tests. */
struct disk_users_roots {
        const char *proc, *sys; /* "/proc", "/sys" */
        /* Whether what the link below /proc leads to is a block node. NULL: the kernel is asked. */
        bool (*is_block)(int directory, const char *name);
        struct disk_users_place *place; /* kept up while it looks; or NULL */
};

/* Who uses one disk. Each item is a phrase: "process 4211 (fio)", "mounted at /mnt". */
struct disk_users {
        int number;
        char *items[DISK_USERS_MAX];
        size_t count;
        size_t dropped; /* there are more */
        int last_pid;   /* of the process that was added last; 0: none */
};

/* Reads /proc and /sys once for all disks, which can block behind a stuck process: see disk_search.h. Give
 * the numbers, each once, and nobody yet; it sorts the disks by number. Returns 0, also where there is nobody
 * or no such disk, or -errno, and then what was found stays as well. What vanishes while it is looked at is
 * not there. */
int disk_users_find(const struct disk_users_roots *roots, struct disk_users *disks, size_t count);
/* Keeps the number. */
void disk_users_clear(struct disk_users *users);
