/* SPDX-License-Identifier: MIT */
/* What the worker gives up, step by step, because it does not need it to serve. */
#pragma once

/* At the very start: nothing that this process executes can gain privileges. 0 or -errno. */
int sandbox_begin(void);

/* Once the backing store is open, while there is one thread: a mount namespace of its own with nothing in it,
 * so that no file system is kept mounted by this process but those of its open files, and none that lies on
 * its own disk is in its reach. Where that is not permitted (no CAP_SYS_ADMIN, a container) nothing changes:
 * it is a precaution against deadlocks, not a boundary. */
void sandbox_leave_files(void);

/* Gives up all capabilities of the calling thread, for good. Every thread must, and a queue's only after it
 * has FETCHed: the kernel looks for partitions only on disks whose queues had CAP_SYS_ADMIN then. 0 or
 * -errno, which is to be fatal. */
int sandbox_drop_capabilities(void);

/* Opens an existing file as a process without capabilities would: what the kernel shows through a descriptor
 * may depend on who opened it (/proc/self/pagemap: where in the machine's memory a page lies). The calling
 * thread keeps its capabilities. fd or -errno. */
int sandbox_open_unprivileged(const char *path, int flags);

/* Memory that this thread allocates must not wait for I/O, which may be its own. Needs CAP_SYS_RESOURCE;
 * without it the process was started by hand, and must not be under memory pressure. */
void sandbox_mark_io_thread(void);
