/* SPDX-License-Identifier: MIT */
/* A look that can hang, in a process of its own, with a limit. */
#pragma once

#include "ublkd/base/problem.h"

/* Run `look`, which adds to `sharing`, in a process that has no descriptor of this one, and wait for it.
 * Return 0; -ETIMEDOUT: it took longer than `patience` milliseconds, and nothing of what it found is known;
 * other -errno. Call only while this process has one thread. */
int look_apart(int (*look)(const void *data, struct problem_list *sharing), const void *data, int patience,
        struct problem_list *sharing);
