/* SPDX-License-Identifier: MIT */
/* Which device a process serves, in words. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* As disk_users_roots.describe: "the device NAME (/dev/ublkbN, served by process PID)", without the
 * node of a worker that has none yet. `store`: a struct device_store; in a
 * process apart, what it was when that process began. */
bool served_disk_describe(const void *store, pid_t pid, char *text, size_t size);
