/* SPDX-License-Identifier: MIT */
/* Starts a process in a control group. */
#pragma once

#include <sys/types.h>

/* Start a process in the control group (cgroup v2) whose directory `group` is, O_PATH is enough. Until it executes a
 * program or ends, it shares our memory, this thread waits, and other threads go on: so `run`, which is called in it,
 * does system calls and touches nothing but what `userdata` leads to. What `run` returns is its exit status. It has our
 * descriptors and our blocked signals, and no handlers of signals.
 *
 * Return 0; -errno: no process was started. -ENOSYS: this is not possible on this machine; -EBADF: `group` is another file;
 * -ENODEV: the group was removed; -EAGAIN: too many processes, also by a limit of the group. */
int proc_clone(int group, int (*run)(void *userdata), void *userdata, pid_t *ret_pid, int *ret_pidfd);
