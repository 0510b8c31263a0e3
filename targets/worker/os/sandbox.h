/* SPDX-License-Identifier: MIT */
/* What the worker gives up, step by step, because it does not need it to serve. */
#pragma once

/* Keep everything that this process executes from gaining privileges. Call at the very start. Return 0 or
 * -errno. */
int sandbox_begin(void);

/* Enter an empty mount namespace. Then this process keeps no file system mounted but those of its open files,
 * and cannot reach one that lies on its own disk. Call once the backing store is open, while there is one
 * thread. Where that is not permitted (no CAP_SYS_ADMIN, a container) nothing changes: it is a precaution
 * against deadlocks, not a boundary. */
void sandbox_leave_files(void);

/* Drop all capabilities of the calling thread, for good. Every thread must, and a queue's only after it has
 * FETCHed: the kernel looks for partitions only on disks whose queues had CAP_SYS_ADMIN then. Return 0 or
 * -errno, which must be fatal. */
int sandbox_drop_capabilities(void);

/* Open an existing file as a process without capabilities would: what the kernel shows through a descriptor
 * may depend on its opener (/proc/self/pagemap: where in the machine's memory a page lies). The calling
 * thread keeps its capabilities. Return the descriptor or -errno. */
int sandbox_open_unprivileged(const char *path, int flags);

/* Keep memory allocations of this thread from waiting for I/O, which may be its own. Needs CAP_SYS_RESOURCE;
 * without it the process was started by hand, and must not be under memory pressure. */
void sandbox_mark_io_thread(void);
