/* SPDX-License-Identifier: MIT */
/* Which programs ublkd executes: those beside it, where a build tree has them, else the installed ones. */
#pragma once

#include <stddef.h>

/* Write the path of the worker. named: the one that the administrator named; NULL: none was. Return 0; -errno, after logging why
 * it cannot be executed and what to do. */
int worker_choose(const char *named, char *path, size_t size);

/* ublkd-helper, as it is now: also when a package puts another one in its place, this ublkd goes on with the one that belongs to
 * it. */
struct helper_program {
        int fd;        /* of the program; -1: not open */
        char path[48]; /* leads to it, for this process and its children, as long as fd is open */
};

/* Open it. Return 0; -errno, after logging why it cannot be executed and what to do. Clear it in any case. */
int helper_program_open(struct helper_program *ret);
void helper_program_clear(struct helper_program *program);
