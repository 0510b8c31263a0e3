/* SPDX-License-Identifier: MIT */
/* Memory of a process that a disk waits for. If the disk has the machine's swap on it, a page of the process that was
 * swapped out would come back from the disk that waits for the process; and memory that it allocates must not wait
 * until something is written to that disk.
 *
 * A page counts from when it is first touched: what is mapped and never used costs nothing. */
#pragma once

/* Keep the pages of all mappings of this process in RAM, those that have not been touched yet as well. Mappings that
 * come later are not included. Return 0 or -errno; at a failure, what was locked before still is. */
int ram_keep_mapped(void);

/* Keep the pages of all mappings of this process in RAM, also of those that come later, without a limit; the limit is
 * lifted for the programs that it starts, too. Return 0; or -errno, and nothing is locked: a limit that cannot be
 * lifted would make mappings fail. */
int ram_keep_all(void);

/* Give back what calls that have returned used of the main thread's stack, up to 512 KiB below the caller's frame. Call it
 * there, in a function that calls go through. */
void ram_drop_stack(void);

/* Keep memory allocations of this thread, and of all that it starts, from waiting for I/O, which may be its own. Needs
 * CAP_SYS_RESOURCE. Return 0 or -errno. */
int ram_wait_for_no_io(void);
