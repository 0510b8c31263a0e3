/* SPDX-License-Identifier: MIT */
/* Who serves a part of a file keeps every other server off it, also one that another ublkd has started: by an
 * OFD lock (F_OFD_SETLK) on the very bytes that the disk lies in, for writing, or shared where the disk is
 * read-only. So disks may lie side by side in one file, a hard link or a bind mount hides nothing, and QEMU
 * (which locks bytes of the image from 100 on, block/file-posix.c) and who locks whole files are kept off
 * and noticed as well. A read-only disk leaves QEMU's bytes alone: images that only are read are shared.
 *
 * The lock belongs to the open file, and ends with its last reference. The rings hold one, until their last
 * request is finished; where nothing of a process outlives it (ublk_queue.c), its descriptors do: as long as
 * a write of a dead worker is on its way, its file is still locked. Of a block device its node is locked,
 * which is another one for each partition. */
#pragma once

#include "ublkd/base/problem.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes of the open file `fd`. What is locked already is fine. */
struct backing_range {
        int fd;
        uint64_t start, end;
        bool writes; /* then fd is open for writing, else for reading */
};

/* Lock the range until the last reference to the open file is gone. Never waits. Return 0; -EAGAIN: another
 * process has locked some of it; other -errno: such a file has no locks. */
int backing_lock(const struct backing_range *range);

/* Lock the range for reading after -EAGAIN, if the locks in the way are only for reading; this keeps all
 * others from writing. Never waits. Return whether the range is so locked. */
bool backing_lock_beside_readers(const struct backing_range *range);

/* Add a problem (BackingInUse) after -EAGAIN that names the process with the lock, as far as /proc shows it.
 * *ret_holder: that process, or 0. Return 0 or -ENOMEM. */
int backing_lock_explain(const struct backing_range *range, const char *pointer,
        struct problem_list *problems, pid_t *ret_holder);
