/* SPDX-License-Identifier: MIT */
/* Which program the workers are: the one that the administrator named, else the one beside ublkd, where a build tree has
 * it, else the installed one. */
#pragma once

#include <stddef.h>

/* Write the path of the worker. named: NULL: none was. Return 0; -errno, after logging why it cannot be executed and
 * what to do. */
int worker_choose(const char *named, char *path, size_t size);
