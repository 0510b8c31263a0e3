/* SPDX-License-Identifier: MIT */
/* What the worker gives up, step by step, because it does not need it to serve. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Keep this process and everything that it executes from gaining privileges: no new ones, an empty bounding set,
 * nothing for being root, no change of capabilities with the user. Try each of these, also after one has failed. Call
 * at the very start: all threads inherit it, and it takes the kernel half a millisecond. Return 0 or the first -errno. */
int sandbox_begin(void);

/* Enter namespaces for networks, System V IPC, the host name and control groups, with nothing in them. Call at
 * the very start, before there is anything to do for a device: it takes the kernel a millisecond or so.
 * *ret_network: the way back for sandbox_keep_network(), which the caller owns, or -errno. Return 0 or -errno. */
int sandbox_leave_host(int *ret_network);

/* Go back to the network that the process was started in. Call while there is one thread, which has its capabilities.
 * Return 0 or -errno. */
int sandbox_keep_network(int network);

/* Make an empty mount namespace, which this process does not enter yet. Call at the very start: it takes the kernel
 * several milliseconds. Return its descriptor, which the caller owns, or -errno. */
int sandbox_make_empty_namespace(void);

/* Enter an empty mount namespace. Then this process keeps no file system mounted but those of its open files,
 * and cannot reach one that lies on its own disk. Since Linux 7.3 every path is refused as well (EOPNOTSUPP), but one
 * that begins at an open directory. Call after sandbox_begin(), once the backing store is open, while there is one
 * thread, and no ring. `empty`: from sandbox_make_empty_namespace(), and the caller's still; if the process may not
 * enter that, or has none (-1), it makes one here. Return 0, or -errno: then it can reach more than that. */
int sandbox_leave_files(int empty);

/* Drop the supplementary groups of the calling thread, for good, and become `user` and the group of the same number
 * (0: keep both). Its capabilities stay. Threads that it starts inherit it: so call it once, before the first.
 * Try both, also after one has failed. Return 0 or the first -errno. */
int sandbox_leave_user(uint32_t user);

/* Drop all capabilities of the calling thread, for good. Every thread must; a queue's before it FETCHes, so that the
 * kernel reads no partition table of its disk. Return 0 or -errno, which must be fatal. */
int sandbox_drop_capabilities(void);

/* Keep the memory of the process out of core dumps and of the sight of its own user, and let it lock none. Call
 * after sandbox_leave_user(): that lets the kernel show it again. Return 0 or -errno. */
int sandbox_hide_memory(void);

/* Open an existing file as a process without capabilities would: what the kernel shows through a descriptor
 * may depend on its opener (/proc/self/pagemap: where in the machine's memory a page lies). The calling
 * thread keeps its capabilities. Return the descriptor or -errno. */
int sandbox_open_unprivileged(const char *path, int flags);
