/* SPDX-License-Identifier: MIT */
/* A target for tests: a disk in two files, which takes turns between them, and which can be made to break a promise.
 *
 * {"type": "pair", "first": PATH, "second": PATH, "fault": …}. */
#pragma once

#include "targets/target.h"

enum { PAIR_CHUNK = 4096 };

enum pair_fault {
        PAIR_SOUND,
        PAIR_ANSWERS_FROM_MEMORY, /* a write is answered before it is in a file */
        PAIR_FLUSHES_NOTHING,
        PAIR_IGNORES_FUA,
        PAIR_FLUSHES_ONE_FILE,
        PAIR_DISCARDS_LATE, /* a discard is answered before it is done, and done after newer writes */
        PAIR_JOINS_FLUSHES, /* a flush that comes while another one is under way is answered with that one */
        PAIR_FLUSHES_OWN_WRITES, /* a flush leaves out a file that its own queue has not changed: no fault with one queue */
        PAIR_READS_STALE, /* a read has its data from a copy that writes do not change */
        PAIR_HIDES_WRITES, /* a write is done by a system call that the record does not see: no fault of a target */
        _PAIR_FAULT_MAX
};

extern const struct target pair_target;

const char *pair_fault_name(enum pair_fault fault);
