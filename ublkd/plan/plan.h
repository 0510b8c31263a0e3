/* SPDX-License-Identifier: MIT */
/* PURE: what is wanted and what is there → the one next step. No I/O header may be included here. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum plan_want {
        WANT_PRESENT, /* a live disk */
        WANT_ABSENT,  /* no disk: deleted, disabled, or to be recreated (disk or worker have an old epoch) */
        WANT_HELD, /* a manual device that lost its worker: leave what is there until a client asks for recovery */
        WANT_GIVEN_UP, /* waiting I/O has waited for recovery.giveUpAfter: fail it, then start again */
        WANT_RENEWED,  /* a live disk, served by another worker than the one that serves it now */
        WANT_EXTENDED, /* a live disk whose worker can serve more than it shows: before the disk grows */
        WANT_GROWN,    /* a live disk that shows more than it does, which its worker can serve */
        _WANT_MAX
};

enum plan_kernel {
        KERNEL_ABSENT, /* no device of ours under our number (a foreign disk counts as absent) */
        KERNEL_ADDED,  /* DEAD: added and not started, or stopped, or deleted and still held open */
        KERNEL_LIVE,
        KERNEL_DOWN, /* QUIESCED or FAIL_IO: lost its worker, can be recovered */
        _KERNEL_MAX
};

enum plan_worker {
        PLAN_WORKER_NONE,
        PLAN_WORKER_STARTING, /* spawned or adopted, has not reported how far it is */
        PLAN_WORKER_PARAMS,   /* backend open, waits for GO */
        PLAN_WORKER_FETCHING, /* GO sent */
        PLAN_WORKER_READY,    /* every queue fetched */
        PLAN_WORKER_SERVING,  /* LIVE sent, or it reported so when it was adopted */
        PLAN_WORKER_LEAVING, /* on its way out: it reported so, it was asked to leave, or it was killed and its death is not
                                seen yet */
        _PLAN_WORKER_MAX
};

/* Whether waiting has lasted too long, or a step keeps failing; see attempt.h. */
enum plan_trouble {
        TROUBLE_NONE,
        TROUBLE_STUCK, /* a wait passed its deadline, or a step failed again and again */
        TROUBLE_HOPELESS, /* the kernel refuses each recovery of this disk, or will never notice the death: start clean */
        _TROUBLE_MAX
};

enum plan_action {
        ACTION_NOTHING, /* as wanted */
        ACTION_WAIT,    /* something is under way and will report, or its deadline will pass */
        ACTION_SPAWN,
        ACTION_ADD_DEV,
        ACTION_SET_PARAMS, /* SET_PARAMS, then GO */
        ACTION_START_DEV,
        ACTION_BEGIN_RECOVERY, /* compare parameters, START_USER_RECOVERY, then GO; see attempt_may_go() */
        ACTION_END_RECOVERY,
        ACTION_MARK_SERVING, /* send LIVE to the worker */
        ACTION_STOP_DEV,
        ACTION_DEL_DEV,
        ACTION_STOP_WORKER, /* kill it; from then on it is LEAVING until its death is seen */
        /* QUIESCE_DEV, again and again until it has left, where the kernel can do it to this disk; else have it leave,
         * which makes it LEAVING, or kill it, if its program is too old for that. Then the disk is one that lost its worker,
         * and what is done about that is done. */
        ACTION_RETIRE_WORKER,
        ACTION_EXTEND_WORKER, /* send it the new size; it looks whether its backing store has that */
        ACTION_GROW_DISK,     /* UPDATE_SIZE */
        _ACTION_MAX
};

/* A consistent picture: the worker's stage is the same before and after the kernel was asked, else ask again.
 * If the kernel did not answer there is no fact: never call plan() with a guess. */
struct plan_facts {
        enum plan_want want;
        enum plan_kernel kernel;
        enum plan_worker worker;
        enum plan_trouble trouble;
};

/* Return the next step. Every combination has an answer. */
enum plan_action plan(const struct plan_facts *facts);

/* Return what a disk's state means. A LIVE disk that can be recovered and whose worker is gone is as good as
 * DOWN: only the kernel has not noticed yet, and START_USER_RECOVERY is EBUSY until it has, so the next
 * worker can be made ready meanwhile. `recoverable`: it was added with USER_RECOVERY. */
enum plan_kernel plan_kernel(enum plan_kernel state, bool recoverable, enum plan_worker worker);

/* What the wish of a device depends on. Times are CLOCK_MONOTONIC microseconds. */
struct plan_wish {
        bool deleting, enabled;
        bool forced;        /* a client asked for the removal although the disk may have openers */
        bool kernel_is_old; /* the kernel's disk carries another epoch than the record; false while there is
                               none */
        bool worker_is_old; /* the worker was made for another epoch than the record; false while there is
                               none */
        bool worker_is_outdated; /* a client asked for a restart after the worker was started */
        /* The disk goes to another worker, or its worker to this ublkd: until then it is not removed, unless by force. Only a disk
         * that is served can be removed without taking it from an opener. 0: no handover. */
        uint64_t handover_until;
        bool manual; /* recovery.trigger */
        /* A manual device was Live in this boot, and a recover that came before that is dropped. To be kept
         * up by the caller, from facts, so that it survives a crash of the supervisor at any point: set (and
         * recover_requested cleared, first) whenever the action for WANT_PRESENT is NOTHING; cleared whenever
         * the action for WANT_ABSENT is NOTHING. */
        bool held;
        bool recover_requested;
        enum plan_kernel kernel;
        enum plan_worker worker;
        /* Bytes. A disk only grows, its worker first, so that every block always has a worker. */
        uint64_t size_wanted;    /* 0: whatever it has */
        uint64_t size_of_worker; /* that it serves */
        uint64_t size_of_disk;   /* that the kernel shows; 0: unknown, or cannot be changed */
        uint64_t lost_since;    /* first seen with a disk whose I/O waits and no worker that serves it; 0: I/O
                                   does not wait */
        uint64_t give_up_after; /* microseconds, 0: never */
        uint64_t now;
};

/* Return what is wanted of the device now. */
enum plan_want plan_want(const struct plan_wish *wish);
/* Return when plan_want() changes its answer merely because time passes, or UINT64_MAX. */
uint64_t plan_want_until(const struct plan_wish *wish);

/* Return the name, for logs. */
const char *plan_action_to_string(enum plan_action action);
const char *plan_want_to_string(enum plan_want want);
const char *plan_kernel_to_string(enum plan_kernel kernel);
const char *plan_worker_to_string(enum plan_worker worker);
