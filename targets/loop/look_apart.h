/* SPDX-License-Identifier: MIT */
/* A look that can hang, in a process of its own, with a limit. */
#pragma once

#include "ublkd/base/problem.h"

/* Has `look` add to `sharing` in a process that has no descriptor of this one, and waits for that. 0;
 * -ETIMEDOUT: it took longer than `patience` milliseconds, and nothing of what it found is known; other
 * -errno. Only while this process has one thread. */
int look_apart(int (*look)(const void *data, struct problem_list *sharing), const void *data, int patience,
        struct problem_list *sharing);
