/* SPDX-License-Identifier: MIT */
/* What the supervisor holds of one device beside its record: its worker, the step under way, its history. */
#pragma once

#include "ublkd/plan/attempt.h"
#include "ublkd/plan/claims.h"
#include "ublkd/base/tree.h"
#include "ublkd/model/daemon_counters.h"
#include "ublkd/reconcile/device_backing.h"
#include "ublkd/reconcile/device_cpus.h"
#include "ublkd/reconcile/device_geometry.h"
#include "ublkd/reconcile/device_holders.h"
#include "ublkd/reconcile/device_note.h"
#include "ublkd/reconcile/device_path.h"
#include "ublkd/reconcile/device_trial.h"
#include "ublkd/reconcile/device_worker.h"
#include "ublkd/store/device_store.h"
#include "ublkd/reconcile/observe.h"
#include "ublkd/proto/region_faults.h"
#include "ublkd/reconcile/reconciler.h"
#include "ublkd/reconcile/user_words.h"

#include <sys/queue.h>

enum device_turn {
        TURN_IDLE,      /* until something reports or the timer fires */
        TURN_QUEUED,    /* in the reconciler's queue */
        TURN_OBSERVING, /* the kernel is being asked */
        TURN_STEPPING,  /* a step is under way */
};

struct managed_device {
        struct reconciler *reconciler;
        char *name;
        char uid[UID_TEXT_SIZE];
        enum device_turn turn;
        bool again; /* something happened during a turn: take another one after it */
        TAILQ_ENTRY(managed_device) of_queue;
        struct tree_node by_name; /* see reconciler_devices.c */

        struct worker_proc *worker;
        enum worker_tie tie;
        struct user_words worker_words; /* that it was started for; all 0 for one that was found */
        uint64_t worker_size;           /* options.size of that spec */
        bool kill_told;                 /* that we killed it, and why, is told already */
        struct user_words growth_words; /* that it was asked to grow for last */
        struct ublk_ctl_call *call;
        sd_event_source *timer;

        struct attempt attempt;
        struct plan_facts facts; /* of this turn */
        enum plan_action action; /* of this turn */
        /* see device_answer.h */
        void (*step_done)(struct managed_device *device, int result);
        uint64_t turn_began;             /* CLOCK_MONOTONIC; 0: not in a turn */
        enum plan_worker worker_seen;    /* when the kernel was asked */
        struct kernel_device kernel;     /* meaningful unless facts.kernel is KERNEL_ABSENT */
        struct device_geometry geometry; /* of this turn */
        bool stranger;                   /* our number is taken by a device that is not ours */
        uint64_t dropped_flags; /* that the kernel has left out of what ADD_DEV asked for, with this spec */
        int candidate;          /* the number that is being tried for a device that had none; -1: not so */
        struct backing_claims claims;    /* what its disk writes to, with or without a worker */
        struct held_claims *held_claims; /* the same in the reconciler's index */
        LIST_ENTRY(managed_device) of_unclaimed;
        bool is_unclaimed;                /* in that list */
        struct problem_list sharing_told; /* who else uses it, as events have it; with the claims */

        struct device_backing backing; /* see device_backing.h */
        struct device_path path;       /* see device_path.h */

        struct user_words words;   /* that the attempts are about */
        bool recover_heard;        /* so is the pending request to recover */
        uint64_t shown_generation; /* that owner, mode and link of the block node follow; 0: none */
        bool unheard;              /* new, and the kernel was never asked anything about it */
        bool unkept;         /* its record is not in the runtime directory as it is, which was reported */
        bool unseen;         /* was there at the start, and the kernel has not yet told of its disk */
        bool unsettled;      /* was there at the start, and has not had its first pass */
        uint64_t lost_since; /* CLOCK_MONOTONIC: its disk's I/O waits since then; 0: it does not */
        uint64_t died_at;    /* CLOCK_MONOTONIC: who served it last was seen to be dead; 0: recovered since */
        struct device_cpus cpus;
        struct region_history history; /* as in its region, which keeps it for the next supervisor */
        struct fault_report faults[_REGION_FAULT_MAX]; /* as read from its region last */
        uint64_t full_since; /* as read from its region last: its store has no room; CLOCK_REALTIME; 0: it has
                              */
        bool full_waits;     /* writes wait for it then */
        uint32_t accepted_with; /* the restart whose accepted faults were noted in the region; 0: none */
        struct restart_trial trial;
        struct spec_trial *spec_trial; /* NULL: none is under way; see spec_trial.h */
        struct device_holders holders;
        struct trouble_note note; /* why the last thing went wrong */
};

struct reconciler {
        struct reconciler_config config;
        struct ublk_ctl *ctl; /* NULL: not there (yet) */
        struct tree devices;  /* by name */
        TAILQ_HEAD(, managed_device) queue;
        size_t waiting; /* devices in the queue */
        struct claim_index claims;
        char **lost; /* see device_claim_lost.c: uids; owned */
        size_t lost_count;
        /* Those whose worker writes, and whose claims are not written down yet, are all in it; others may be. */
        LIST_HEAD(, managed_device) unclaimed;
        sd_event_source *run; /* enabled while the queue holds something */
        size_t unsettled;     /* devices that were there at the start and have not had their first pass */
        bool settled;         /* and that was said */
        struct daemon_counters counters; /* steps by enum plan_action */
        struct event_journal *journal;
        char boot_id[UID_TEXT_SIZE];
};
