/* SPDX-License-Identifier: MIT */
/* Which process has locked what: of OFD locks the kernel tells no pid, but /proc/PID/fdinfo shows them. */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <sys/types.h>

enum { LOCK_HOLDER_NAME_SIZE = 96 };

struct lock_holder {
        pid_t pid;
        char name[LOCK_HOLDER_NAME_SIZE]; /* what ps(1) shows of it, shortened */
};

/* The first process under `proc` ("/proc") with a lock on the file of this number that would not go together
 * with `wanted` (l_type, l_start, l_len). Reads what the kernel knows by itself, and asks no file system.
 * False if no holder is visible. */
bool lock_holder_find(const char *proc, ino_t number, const struct flock *wanted, struct lock_holder *ret);
/* The same of a process that is known. */
bool lock_holder_name(const char *proc, pid_t pid, struct lock_holder *ret);
