/* SPDX-License-Identifier: MIT */
/* Describes the device that a process serves, for people. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Write "the device NAME (/dev/ublkbN, served by process PID)", without the node while the worker has none;
 * for disk_users_roots.describe. Return false if no worker has this pid. `store`: a struct device_store; in
 * another process, the copy of it from when that process was forked. */
bool served_disk_describe(const void *store, pid_t pid, char *text, size_t size);
