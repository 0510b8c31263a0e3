/* SPDX-License-Identifier: MIT */
/* Starts a program of ours in the background, with descriptors in known places. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

enum { PROC_SPAWN_FIRST_FD = 3, PROC_SPAWN_FDS_MAX = 4 };

struct proc_spawn {
        const char *program;         /* a path; not looked up in PATH. NULL: this very program */
        const char *const *argv;     /* NULL-terminated */
        int fds[PROC_SPAWN_FDS_MAX]; /* become 3, 4, … in the new process; stay open here */
        unsigned fd_count;
        bool block_signals; /* start with every signal blocked; else with none */
        int group; /* the directory of the control group that it is born in, where that is possible; 0: ours */
};

/* Start the program, and return when it has been executed: a path that cannot be is an error here. The
 * process gets no descriptors but these, stdin from /dev/null, and our stderr as its stdout and stderr. It
 * has a session of its own (^C on ublkd does not reach it), default signal handlers, and an environment
 * without what was meant for ublkd alone. *ret_pidfd names the process for as long as it is open; this
 * process reaps it. Return 0 or -errno. */
int proc_spawn(const struct proc_spawn *spawn, pid_t *ret_pid, int *ret_pidfd);
