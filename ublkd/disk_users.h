/* Who uses /dev/ublkbN: processes that hold it (or one of its partitions) open or mapped, mounts in any mount
 * namespace, what the kernel has built on top (disk_stack.h), swap. Probes by udev do not count, nor do files
 * that are only called like the node. */
#pragma once

#include "ublkd/base/problem.h"

#include <stdbool.h>

enum { DISK_USERS_MAX = 16 };

/* Where to look; for tests. */
struct disk_users_roots {
        const char *proc, *sys; /* "/proc", "/sys" */
        /* Whether what the link below /proc leads to is a block node. NULL: the kernel is asked. */
        bool (*is_block)(int directory, const char *name);
};

/* Each entry is a phrase: "process 4211 (fio)", "mounted at /mnt". Zero-initialise. */
struct disk_users {
        char *items[DISK_USERS_MAX];
        size_t count;
        size_t dropped; /* there are more */
};

/* Reads /proc and /sys, which can block behind a stuck process: see disk_users_check(). Returns 0, also when
 * there is nobody or no such disk, or -errno. What vanishes while it is looked at is not there. */
int disk_users_find(const struct disk_users_roots *roots, int number, struct disk_users *ret);
void disk_users_clear(struct disk_users *users);

/* The same in a process of its own that is given up after two seconds. 1: in use, and one problem names the
 * users (also when nobody could tell in time: then better not touch it); 0: not in use; -errno. */
int disk_users_check(int number, struct problem_list *problems);
