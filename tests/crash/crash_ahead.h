/* SPDX-License-Identifier: MIT */
/* A target for tests: a disk in a file, with kept memory for each queue, which can be made to break a promise.
 *
 * A write is answered when the log of its queue has its blocks; so the logs are ahead of the file. Any queue may write any
 * block: the record of the highest sequence counts, whichever log has it. A flush writes what all logs have to the file. Then it
 * stores into the kept memory of the disk which sequence is settled: records up to it are void, and each queue erases its own
 * when it writes next. So each log is stored to by its own queue alone.
 *
 * {"type": "ahead", "path": PATH, "fault": …}; the file has AHEAD_BLOCKS blocks at most. */
#pragma once

#include "targets/target.h"

enum { AHEAD_BLOCK = 512, AHEAD_BLOCKS = 64, AHEAD_QUEUES_MAX = 4 };

enum ahead_fault {
        AHEAD_SOUND,
        AHEAD_APPENDS_LATE,  /* the last block of a write is in the log when the next request comes */
        AHEAD_SETTLES_FIRST, /* a flush notes what is settled before it is in the file */
        /* No faults with one queue: */
        AHEAD_REPLAYS_ONE_LOG, /* the next worker replays the log of the first queue alone */
        AHEAD_COUNTS_BY_QUEUE, /* the sequence in a record is that of its queue */
        AHEAD_REPLAYS_SETTLED, /* the next worker does not know what was settled */
        AHEAD_FLUSHES_OWN_LOG, /* a flush writes what its own queue has, and settles nothing */
        _AHEAD_FAULT_MAX
};

extern const struct target ahead_target;

const char *ahead_fault_name(enum ahead_fault fault);
