/* SPDX-License-Identifier: MIT */
/* PURE: how often and how fast one device's steps are tried, and when they are in trouble. History, which
 * plan() does not have; lost with the supervisor. Patience depends on it, and the time for which a removal waits in a
 * handover: so the next ublkd begins one for each disk that it finds without a worker that is known to serve.
 *
 * One pass of the reconciler over a device:
 *
 *   worker->died?                 attempt_worker_died()
 *   ask the kernel; no answer?    look again at attempt_blind()
 *   facts.want = plan_want(), facts.trouble = attempt_observe(&facts)
 *   action = plan(&facts)
 *   attempt_due(action) > now?    look again then (UINT64_MAX: only when something reports)
 *   carry it out, alone           attempt_done(action, result), look again at once
 *
 * Times are CLOCK_MONOTONIC microseconds, results 0 or -errno. */
#pragma once

#include "ublkd/plan/plan.h"

enum {
        ATTEMPT_TRIES = 3,     /* steps without effect in one situation → TROUBLE_STUCK */
        ATTEMPT_RELEASES = 40, /* after some 2 s of waiting for a release, the status says what is awaited */
        ATTEMPT_SETTLES =
                2000, /* microseconds that a driver needs, at most, once it has shown a disk as down */
        ATTEMPT_REFUSALS = 3, /* workers for which the kernel refused a recovery → TROUBLE_HOPELESS */
        /* Microseconds of waiting for the driver to notice a death, after which it should have. It learns of some deaths from
         * the timeout of a request only: 30 s by default (BLK_MQ_RQ_TIMEOUT), or what was written to io_timeout. */
        ATTEMPT_OVERDUE = 10 * 1000 * 1000,
        ATTEMPT_OVERDUE_FULL = 120 * 1000 * 1000,
        ATTEMPT_LOOKS_APART =
                1000 * 1000, /* microseconds, at least, between two looks that find no holder of the queues */
};

/* Zero-initialise for a device that is new, or new to this supervisor. */
struct attempt {
        struct plan_facts seen; /* the situation: all but trouble */
        uint64_t seen_since;    /* 0: nothing seen yet */
        uint64_t retry_at;      /* no step before, while the situation lasts */
        uint64_t spawn_at;      /* no SPAWN before */
        uint64_t unsure_until;  /* an ADD_DEV that was given up may still make a disk */
        uint64_t grow_at;       /* no UPDATE_SIZE before: one that was given up may yet take effect */
        unsigned deaths;        /* of workers, since one that served for long enough was forgiven its death */
        unsigned breaches;      /* workers killed for what they sent, since one served very long */
        uint64_t served;        /* by this worker, as far as it is counted */
        uint64_t counted;       /* service is counted up to then */
        uint64_t owed;          /* service, for the deaths that were forgiven */
        uint64_t wait_since;    /* waiting began: with the situation, or with the last way out of it */
        unsigned tries;         /* steps in this situation that had no effect */
        unsigned tried_out;     /* how many of them were followed by a way out (STOP_WORKER) */
        unsigned busy;          /* in a row: EBUSY from START_USER_RECOVERY, EINPROGRESS from ADD_DEV */
        bool watched;           /* the close of /dev/ublkcN will be reported */
        uint64_t closed_at;     /* it was closed last; 0: not seen */
        unsigned blind;         /* failures in a row to get an answer from the kernel */
        unsigned refusals;      /* workers for which a recovery of this disk was refused (EINVAL) */
        bool refused;           /* it was refused for this worker */
        uint64_t busy_since;    /* the first of `busy` */
        uint64_t
                unheld_since; /* the disk is live in the driver, and no process has its queues; 0: some may */
        bool unnoticed;       /* so it was when it was looked at again */
        bool retired;         /* this worker was asked to exit */
        uint64_t handover_since;  /* see attempt_handover(); 0: there is none, or it has ended */
        unsigned handover_deaths; /* of workers, since then */
        bool blocked; /* a command that was given up kept the last step from being sent: EALREADY */
        int error;    /* of the last step that failed, -errno, or 0: for the status */
        enum plan_action failed; /* that step; meaningless while error is 0 */
};

/* Note want, kernel and worker, and return the trouble that they are in (facts->trouble is not read). */
enum plan_trouble attempt_observe(struct attempt *attempt, const struct plan_facts *facts, uint64_t now);
/* Note that this worker was asked to exit. */
void attempt_retired(struct attempt *attempt);
/* Note that the disk is handed over to another worker, or its worker to this ublkd. It ends when a worker serves that is not to
 * be replaced. If one is under way, it begins again: what ended before was another worker. */
void attempt_handover(struct attempt *attempt, uint64_t now);
/* Note that a worker is gone of whose service nothing is known: dead before the start of this ublkd, or as good as that.
 * For the handover alone. */
void attempt_worker_lost(struct attempt *attempt);
/* Return until when a removal waits for the end of the handover; 0: it does not: there is none, or another worker than the
 * first has died since. */
uint64_t attempt_handover_until(const struct attempt *attempt);
/* Return when to try again, after the kernel gave no answer. */
uint64_t attempt_blind(struct attempt *attempt, uint64_t now);

/* Return when to carry out what plan() returned for the facts last observed (at or before now: at once), or for
 * NOTHING and WAIT when to look again. UINT64_MAX: not before something reports. What is as wanted is looked
 * at again after a minute. The record of a deleted device goes only when that is the answer for NOTHING: else
 * an ADD_DEV that was given up may still make a disk of ours. */
uint64_t attempt_due(const struct attempt *attempt, enum plan_action action, uint64_t now);

/* Return whether START_USER_RECOVERY may be sent. Until then the step is EBUSY, as if the driver had refused it.
 * cancels_late: kernel_cancels_late(); down_since: when the driver first showed that the disk is down, 0: it does not
 * yet. A driver that cancels late gets ATTEMPT_SETTLES for it, which takes microseconds unless its CPU is taken away. */
bool attempt_may_begin(bool cancels_late, uint64_t down_since, uint64_t now);

/* Return whether START_USER_RECOVERY's result is to be followed by GO (BEGIN_RECOVERY). EINVAL is: some
 * kernels give it when the last worker died between START_USER_RECOVERY and its first FETCH; the disk waits
 * for one all the same. */
bool attempt_may_go(int result);

/* Return what ADD_DEV's `result` means, now that GET_DEV_INFO has answered whether a foreign disk has the
 * number. EEXIST without a disk is -EINPROGRESS and lasts milliseconds: the kernel does not find a disk whose
 * last reference is gone, but the number is free only at the end of its release, which waits for SRCU readers
 * (ublk_get_device_from_id(), ublk_cdev_rel() in ublk_drv.c; blk_mq_free_tag_set()). */
int attempt_add_result(int result, bool foreign);

/* Return whether the kernel still releases a dead worker, or a number: not a failure, and as a rule a matter
 * of milliseconds. An ADD_DEV that has waited for ATTEMPT_RELEASES is none of these any more, but still
 * waits. */
bool attempt_waits_for_release(const struct attempt *attempt);

/* Return whether the recovery has waited for so long (EBUSY) that the driver may never notice the death. full: all tags of a
 * queue may be in flight. */
bool attempt_is_overdue(const struct attempt *attempt, bool full, uint64_t now);

/* Note that the driver shows the disk as live, and that no process has its queues. After a second time it is
 * TROUBLE_HOPELESS. */
void attempt_unheld(struct attempt *attempt, uint64_t now);
/* Note that this is not so: what attempt_unheld() has noted is void. */
void attempt_held(struct attempt *attempt);

/* Return whether an ADD_DEV that was given up may still make a disk, so that its number must not be
 * dropped. */
bool attempt_is_unsure(const struct attempt *attempt, uint64_t now);

/* Note the result of a step: 0 or -errno of its kernel command, or of a GO that could not be sent after it.
 * Call it before the next attempt_observe(). */
void attempt_done(struct attempt *attempt, enum plan_action action, int result, uint64_t now);
/* Note whether attempt_closed() will be called. As long as it will, START_USER_RECOVERY is repeated rarely: each try takes CPU
 * time from the end of the dead worker. */
void attempt_watch(struct attempt *attempt, bool watched);
/* Note that the character device of the disk was closed: the driver is about to release it, so look at once, and then as often
 * as at the beginning. */
void attempt_closed(struct attempt *attempt, uint64_t now);
/* Return whether the last step had its effect, as far as its result says, and none before it in the same situation is
 * still to be repeated. */
bool attempt_succeeded(const struct attempt *attempt);
/* Return whether the disk may grow at any time: an UPDATE_SIZE was given up, and the driver may have it still. */
bool attempt_may_grow(const struct attempt *attempt);

/* Note that a command that was given up has returned: a step that it blocked (EALREADY) is due at once. */
void attempt_released(struct attempt *attempt, uint64_t now);

/* Note that a worker is gone, by whatever cause. Once for each. The next one starts at once if this one has served for a
 * second, or else after a back-off, which grows with each such worker. Of workers that serve for less than a minute, only
 * some 60 in a row are replaced at once: then the back-off grows with these, too. */
void attempt_worker_died(struct attempt *attempt, uint64_t now);

/* Note that a worker is gone that ublkd has killed for what it sent: the next one starts after a back-off, which
 * grows with each such worker. Instead of attempt_worker_died(). */
void attempt_worker_broke(struct attempt *attempt, uint64_t now);

/* Drop old failures, and try at once: the client asked (new spec, recover, restart). */
void attempt_reset(struct attempt *attempt);
