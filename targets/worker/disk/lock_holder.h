/* SPDX-License-Identifier: MIT */
/* Which process has locked what: of OFD locks the kernel reports no pid, but /proc/PID/fdinfo shows them. */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <sys/types.h>

enum { LOCK_HOLDER_NAME_SIZE = 96 };

/* By its command. A later one comes first where several have the same lock. */
enum holder_kind {
        HOLDER_OTHER,      /* not of ublkd */
        HOLDER_SUPERVISOR, /* keeps the descriptor of a store, and its lock, for a worker */
        HOLDER_WORKER,
};

struct lock_holder {
        pid_t pid;
        enum holder_kind kind;
        char name[LOCK_HOLDER_NAME_SIZE]; /* for people: what ps(1) shows of it, shortened */
};

/* Find the process under `proc` ("/proc") with a lock on the file of this number that conflicts with `wanted`
 * (l_type, l_start, l_len); of several a worker of ublkd, or else its supervisor. Reads only what the kernel
 * knows itself, and asks no file system. Return false if no holder is visible. */
bool lock_holder_find(const char *proc, ino_t number, const struct flock *wanted, struct lock_holder *ret);
/* Fill *ret for the process `pid`. Return false if it is not visible. */
bool lock_holder_name(const char *proc, pid_t pid, struct lock_holder *ret);
