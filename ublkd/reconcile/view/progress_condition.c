/* SPDX-License-Identifier: MIT */
/* Reports a disk none of whose requests ends. */
#include "ublkd/reconcile/view/progress_condition.h"

static const enum condition_reason reasons[_PROGRESS_MAX] = {
        [PROGRESS_SLOW] = REASON_BACKING_SLOW,
        [PROGRESS_STARVED] = REASON_WORKER_STARVED,
        [PROGRESS_STOPPED] = REASON_WORKER_HUNG,
        [PROGRESS_SPINS] = REASON_WORKER_HUNG,
        [PROGRESS_LOST] = REASON_WORKER_HUNG,
};

enum condition_reason progress_reason(enum progress progress)
{
        return reasons[progress];
}

static const char *sentence_of(enum progress progress)
{
        switch (progress) {
        case PROGRESS_SLOW:
                return "Requests wait for the backing store, and have not ended since lastTransitionTime; "
                       "check "
                       "whether the store answers. The disk goes on by itself when it does.";
        case PROGRESS_STARVED:
                return "The worker gets no CPU, and requests have not ended since lastTransitionTime; check "
                       "the load of the machine. The disk goes on by itself.";
        case PROGRESS_STOPPED:
                return "The worker is stopped. ublkd does not kill it, because that would cost I/O or the "
                       "disk (recovery.onCrash, recovery.trigger). Find the cause of the stop, and continue "
                       "the worker (SIGCONT).";
        case PROGRESS_SPINS:
                return "The worker spins, and requests have not ended since lastTransitionTime. ublkd does "
                       "not kill it, because that would cost I/O or the disk (recovery.onCrash, "
                       "recovery.trigger). When the disk is not in use, run 'ublkctl restart'.";
        case PROGRESS_LOST:
                return "The kernel waits for requests that the worker does not know of. Another worker does "
                       "not help, or would cost I/O or the disk (recovery.onCrash, recovery.trigger). Look "
                       "into the log of the kernel. When the disk is not in use, run 'ublkctl restart'.";
        default:
                return NULL;
        }
}

int progress_condition(enum progress progress, uint64_t since, struct device_condition *ret)
{
        int r;

        if (reasons[progress] == REASON_NONE)
                return 0;
        r = device_condition_set(ret, CONDITION_FALSE, reasons[progress], "%s", sentence_of(progress));
        if (r >= 0)
                ret->transition_at = since;
        return r;
}
