/* SPDX-License-Identifier: MIT */
/* The crash judge: does a target keep what it has promised when its worker dies, or when the power is cut?
 *
 * For each seed it serves a disk with the real callbacks of the target, its real files and random requests, several at
 * a time; crash_record.h notes what happens to the files. Then, for each moment of the record, it makes the files that a
 * crash at that moment can have left (crash_image.h) and the kept memory (crash_kept.h), opens them with the target
 * again, as the next worker does, reads the whole disk, and holds it against crash_model.h. The answers to reads before
 * the crash are held against it as well.
 *
 * A disk may have several queues, which one thread turns in an order drawn from the seed: what two threads do to the
 * memory of the target at the same time does not show. Of the plain way (queue/plain.h), which no callback of the target
 * sees, its rules and moves are judged; queue_requests.c around them is not.
 *
 * What it does not show either: errors of the files; a worker that is replaced while the driver replays what was in flight; of
 * the stores into kept memory between two moments, of one queue or of several, a death that leaves only some of them; what the
 * kernel and the disk below the files do. And all that crash_record.h cannot see. */
#pragma once

#include "tests/crash/crash_client.h"

#include <stdio.h>

/* A target and its options. Zero or NULL is the usual. */
struct crash_case {
        const char *name;       /* in messages */
        const char *spec;       /* JSON of a device; @0, @1, … are the paths of its files */
        const char *spec_after; /* of the worker after the crash, whose files lie in memory; NULL: the same */
        const char *parent;     /* the directory in which the recorded disk has its files; NULL: in memory */
        unsigned files;         /* may be 0 */
        uint64_t file_size;     /* bytes, of each file at first */
        uint64_t capacity;      /* bytes that each file may grow to; 0: file_size */
        /* Make of the empty files what the target opens. Return 0 or -errno. NULL: they are as they should be. */
        int (*prepare)(char *const *paths);
        unsigned queues;           /* at least so many; 0: one */
        enum client_entry entry;   /* a plain one: of a disk that lies in one file as it is */
        bool discard_is_undefined; /* a discarded sector need not read as zeroes */
        bool deaths_only; /* all of the disk is in kept memory, which a power cut empties: no power cuts */
};

struct crash_effort {
        uint64_t seed;     /* the first one; each run has the next */
        uint64_t seeds;    /* how many runs; 0: 1 */
        unsigned requests; /* of each run; 0: 40 */
        unsigned depth;    /* at most so many at a time, up to HOST_DEPTH; 0: 8 */
        unsigned
                draws; /* how many images by chance of each moment and kind of crash, beside the one of what is
                              certain; 0: 1 */
        bool quiet;    /* print nothing of a finding */
};

enum crash_verdict {
        CRASH_PASSED,
        CRASH_LOST,     /* a crash can leave what the model does not admit */
        CRASH_LIED,     /* a request had an answer that the model does not admit */
        CRASH_UNOPENED, /* the target cannot open, or read, what a crash can leave */
        CRASH_BLIND,    /* the record does not explain the files, so nothing was shown */
        _CRASH_VERDICT_MAX
};

struct crash_result {
        enum crash_verdict
                verdict;      /* of the run that was the last one: the judge stops at the first finding */
        enum crash_kind kind; /* CRASH_LOST, CRASH_UNOPENED */
        uint64_t seed, runs, images; /* of that run; how many runs; how many images a target was opened on */
        uint64_t judged;             /* moments, of each kind and draw; many have the same image */
        uint64_t overtaken;          /* operations that were done after one that was begun later */
        uint64_t plain;              /* requests that went the plain way */
        uint64_t fingerprint;        /* of the records: equal for equal seeds */
};

const char *crash_verdict_name(enum crash_verdict verdict);

/* Judge a target. Return 0: all runs were made, or there is a finding, which is printed with its seed to stderr; -errno:
 * no run can be made here, with the reason printed. */
int crash_judge(const struct crash_case *crash, const struct crash_effort *effort, struct crash_result *ret);

/* Return a seed from the environment (UBLKD_TEST_SEED), or a new one. */
uint64_t crash_draw_seed(void);
