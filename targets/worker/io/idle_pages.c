/* SPDX-License-Identifier: MIT */
/* Memory is given back that the driver may write to meanwhile.
 *
 * The pages are not dropped but moved elsewhere first, in one system call that leaves an empty place at the
 * old address (MREMAP_DONTUNMAP). Then it is seen whether a request came. Three facts make that enough:
 *
 * 1. Task work of a thread runs in that thread alone, on its way back to user mode or where a system call
 *    asks for it, which mremap() does not. So a request's bytes are written before the move or after it,
 *    never during it, and all to one side.
 * 2. The driver copies the bytes and completes the command in one go: __ublk_rq_task_work() in
 *    drivers/block/ublk_drv.c, under io_handle_tw_list() in io_uring, which flushes all completions before
 *    it returns. So in user mode, bytes are in memory exactly when their completion is in the ring.
 * 3. A tag that has a request gets no other before the answer to that.
 *
 * No completion: nothing was written, neither to the pages that were moved (1, 2) nor, so far, to the empty
 * place; what comes now goes there. The pages are dropped.
 * A completion: by 3 nothing more is written. The bytes lie in the place if something is in it now, for it
 * was empty, and else in the pages that were moved, from where they are taken back. What the place has, a
 * page or one that was swapped out, is in /proc/self/pagemap (Documentation/admin-guide/mm/pagemap.rst). Only
 * the first page need be looked at: requests begin in front of it and have no gaps. Two bits of its entry are
 * enough (62: swapped, 63: present), which each process may read of its own memory; the others are zero, for the
 * file was opened without capabilities. */
#include "targets/worker/io/idle_pages.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool has_completed(const struct idle_pages_watch *watch)
{
        const struct io_uring_cq *cq = &watch->ring->cq;
        unsigned head = *cq->khead, tail = io_uring_smp_load_acquire(cq->ktail);

        for (; head != tail; head++)
                if (cq->cqes[head & cq->ring_mask].user_data == watch->user_data)
                        return true;
        return false;
}

/* 1: there is a page; 0: none, and none was written since there was none; -errno. */
static int is_populated(int pagemap, const void *address)
{
        enum { SWAPPED_OR_PRESENT = 62 };
        uint64_t entry;
        off_t offset = (off_t)((uintptr_t)address / (size_t)sysconf(_SC_PAGESIZE) * sizeof(entry));
        ssize_t got = pread(pagemap, &entry, sizeof(entry), offset);

        if (got != (ssize_t)sizeof(entry))
                return got < 0 ? -errno : -EIO;
        return entry >> SWAPPED_OR_PRESENT != 0;
}

/* It may have been joined to a neighbour, and then be one mapping too many to cut out. */
static void drop(void *moved, size_t length)
{
        if (munmap(moved, length) < 0)
                (void)madvise(moved, length, MADV_DONTNEED_LOCKED);
}

int idle_pages_drop(void *address, size_t length, const struct idle_pages_watch *watch)
{
        /* The kernel looks at the last argument, which is where it may go to: anywhere. */
        void *moved = mremap(address, length, length, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
        bool has_request;
        int r = 0;

        if (moved == MAP_FAILED)
                return -errno;
        has_request = has_completed(watch);
        if (has_request)
                r = is_populated(watch->pagemap, address);
        if (has_request && r == 0)
                memcpy(address, moved, length);
        drop(moved, length);
        if (r < 0)
                return -ENOTRECOVERABLE;
        return has_request ? 1 : 0;
}
