/* SPDX-License-Identifier: MIT */
/* PURE: whether a worker makes progress with the requests of its disk, and what keeps it from that.
 *
 * The kernel counts the requests of the disk that have ended and those that have not; nothing that a worker does
 * can forge that. The worker counts those of each of its queues, in the region: a worker that lies there harms its
 * own disk. /proc shows what its threads do. No request has to end in a given time: progress is that some do.
 *
 * Times are CLOCK_MONOTONIC microseconds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum progress {
        PROGRESS_MADE, /* requests end, or there are none */
        PROGRESS_UNSURE, /* none has ended for a while, and one more look has to confirm that, because a clock may
                             jump, and to find out why: progress_next() */
        PROGRESS_SLOW,    /* the worker waits for the backing store */
        PROGRESS_STARVED, /* it wants to run, and gets no CPU */
        PROGRESS_STOPPED, /* a signal or a debugger has stopped it */
        PROGRESS_SPINS,   /* a thread runs, and does not come back to its queue */
        PROGRESS_LOST,    /* it sleeps, and does not know of the requests that the kernel waits for */
        _PROGRESS_MAX
};

enum progress_thread {
        THREAD_UNKNOWN, /* not looked at, or gone */
        THREAD_SLEEPS,  /* also in a system call that takes its time */
        THREAD_RUNS,    /* or would if it had a CPU */
        THREAD_STOPPED,
};

/* What one look sees of a queue. */
struct progress_queue {
        uint64_t rounds; /* turns of its loop */
        uint64_t ended;  /* requests, of any kind and result */
        uint64_t
                at_store; /* requests that came and have not ended, without those that the worker holds back */
        enum progress_thread thread;
        uint64_t cpu_usec; /* that the thread has used */
};

struct progress_look {
        uint64_t at;
        uint64_t disk_ended, disk_in_flight; /* requests, as the kernel counts them */
        bool held;    /* the worker holds requests back: for limits, or until the store has room */
        bool full;    /* the latter */
        bool stopped; /* the process is, whatever its disk has to do */
        unsigned count;
        struct progress_queue *queues;
};

/* What is remembered from look to look. Zero-initialise for a worker that has just begun to serve. */
struct progress_memory {
        uint64_t disk_ended,
                disk_since; /* the number, and since when it stands still with requests in flight */
        uint64_t stopped_since;
        enum progress last; /* what the last look found by itself */
        unsigned count;
        struct progress_seen {
                struct progress_queue last;
                uint64_t since; /* its `ended` stands still with requests at the store; 0: it does not */
                uint64_t rounds_since; /* its `rounds` stands still */
                uint64_t sampled_at;   /* its thread was looked at last; 0: not in this standstill */
                uint64_t cpu_usec;     /* of then */
        } *queues;                     /* the caller allocates and frees them: `count` zeroes */
};

/* Return whether nothing has ended for `patience` on the disk or on one of the queues, or a loop has not turned while
 * the disk has requests: then the look needs the threads, too. Changes nothing. memory->count must equal
 * look->count. */
bool progress_needs_threads(
        const struct progress_memory *memory, const struct progress_look *look, uint64_t patience);
/* Remember the look, and return what it shows. Of several queues that stand still, the worst decides: what ends
 * only by a kill comes first. */
enum progress progress_judge(
        struct progress_memory *memory, const struct progress_look *look, uint64_t patience);

/* Return when to look for the first time: within the time until the second look, at a place of it that `spread` chooses
 * (any number). So devices that begin to serve together are not looked at together. */
uint64_t progress_first(uint32_t spread, uint64_t now, uint64_t patience);
/* Return when to look again: often enough that a standstill is found within one and a half times `patience`, and two
 * seconds. */
uint64_t progress_next(enum progress progress, uint64_t now, uint64_t patience);
/* Return whether only another worker helps. */
bool progress_calls_for_kill(enum progress progress);

/* What the death of a worker costs, by its spec. */
struct progress_price {
        bool automatic;    /* another one takes over at once */
        bool replayed;     /* no request fails */
        bool disk_goes;    /* the disk is removed, and ublkd creates another one */
        bool fails_writes; /* that wait for room */
};

/* Return whether a worker that hangs is to be killed: if that costs nothing, or no more than the user has accepted for
 * a death, and requests wait. */
bool progress_kill_is_worth(const struct progress_price *price, const struct progress_memory *memory);
/* Return whether the death of a worker costs nothing. */
bool progress_kill_is_free(const struct progress_price *price);
