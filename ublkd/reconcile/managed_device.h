/* SPDX-License-Identifier: MIT */
/* What the supervisor holds of one device beside its record: its worker, the step under way, its history. For
 * reconciler.c (when), device_steps.c (what), device_report.c (how it is told) and what they are made of; not
 * for others. */
#pragma once

#include "ublkd/plan/attempt.h"
#include "ublkd/plan/claims.h"
#include "ublkd/base/clock.h"
#include "ublkd/base/tree.h"
#include "ublkd/model/daemon_counters.h"
#include "ublkd/reconcile/device_backing.h"
#include "ublkd/reconcile/device_cpus.h"
#include "ublkd/reconcile/device_geometry.h"
#include "ublkd/reconcile/device_holders.h"
#include "ublkd/reconcile/device_path.h"
#include "ublkd/store/device_store.h"
#include "ublkd/reconcile/observe.h"
#include "ublkd/proto/region_faults.h"
#include "ublkd/reconcile/reconciler.h"

#include <sys/queue.h>

enum device_turn {
        TURN_IDLE,      /* until something reports or the timer fires */
        TURN_QUEUED,    /* in the reconciler's queue */
        TURN_OBSERVING, /* the kernel is being asked */
        TURN_STEPPING,  /* a step is under way */
};

/* What happened. */
struct trouble_note {
        enum condition_reason reason; /* REASON_NONE: nothing did */
        char *sentence;               /* ends with a full stop; owned; NULL: nothing did */
};

struct managed_device;

/* What the user has said of a device. A try is judged by the words that it was made for: what it failed for
 * says nothing about words that came after it began. */
struct user_words {
        uint64_t generation; /* 0: not known, which is as good as older */
        uint64_t asked;      /* device_record.asked */
};

/* Why a worker is killed. */
enum worker_kill {
        KILL_UNWANTED,   /* it serves what is not wanted, or not there any more */
        KILL_TO_REPLACE, /* it is to be replaced, and the driver cannot have it finish and leave */
        KILL_STUCK,      /* it did not do its part in time */
        _WORKER_KILL_MAX
};

/* See device_trial.c. */
struct restart_trial {
        struct worker_proc *worker; /* NULL: none under way */
        sd_event_source *timer;
        void (*then)(struct managed_device *device, int result); /* the step that waits for it, or NULL */
        struct user_words words;                                 /* that it is made for, or was last */
        uint32_t passed, refused; /* record->restart for which it went so last; 0: none */
        char *sentence;           /* why it was refused; owned */
};

/* Whether `worker` of a device is there, and was before. */
enum worker_tie {
        WORKER_NEVER,     /* NULL: none was started or found */
        WORKER_UNREACHED, /* NULL: there may be one that could not be adopted yet */
        WORKER_HELD,
        WORKER_KILLED, /* by us, and its death is not seen yet */
        WORKER_LOST,   /* NULL: it died */
};

/* What ps(1) shows of a worker on trial. */
#define WORKER_TRIAL_NAME "(trial)"

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
        struct plan_facts facts;         /* of this turn */
        enum plan_action action;         /* of this turn */
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

/* device_wish.c: what plan_want() takes, from the record and the facts of this turn. */
struct plan_wish device_wish(struct managed_device *device, const struct device_record *record, uint64_t now);

/* device_steps.c: carries out device->action. Calls device_step_done() exactly once: later, or before it
 * returns. */
void device_step(struct managed_device *device, const struct device_record *record);
/* device_add.c: ACTION_ADD_DEV, with a number if the device has none. */
void device_step_add(struct managed_device *device, const struct device_record *record);

/* device_answer.c: the answer of a command has come. Returns it, noted when it is a failure. */
int device_take_answer(struct managed_device *device, const struct device_record *record, int result);
/* device_answer.c: the same for a command after which the worker is told something. -ECONNRESET: it is gone,
 * or not wanted. */
int device_take_answer_for_worker(
        struct managed_device *device, const struct device_record *record, int result);
/* device_answer.c: a ublk_ctl_done for commands after which nothing else is to be done; userdata is the
 * device. */
void device_on_command_done(void *userdata, int result, const struct kernel_device *kernel);
/* device_answer.c: a command that could not even be sent is a command that failed. */
void device_command_sent(struct managed_device *device, int result, ublk_ctl_done done);

/* device_node.c: says what the node of a disk is to be called, before it appears. 1; 0: it said so before;
 * -errno. */
int device_announce_node(const struct managed_device *device, const struct device_record *record);
/* device_node.c: lets owner, mode and link of a live disk's node follow the spec, if they do not yet. */
void device_show_node(struct managed_device *device, const struct device_record *record);
/* device_node.c: takes back what was told of the node of a disk that is gone: the number may be somebody
 * else's next. */
void device_hide_node(struct managed_device *device, const struct device_record *record);
/* device_wish.c: the driver's features that its disk can have: those of the host, without what the driver has
 * left out of an earlier ADD_DEV of this spec. */
uint64_t device_features(const struct managed_device *device);

/* device_claim.c: its disk is about to write to what its worker has opened. 0; -EBUSY and a note when the
 * disk of another device does so already, or, for a new disk, somebody else; -ENOMEM. On failure the worker
 * has to go: another try comes after the back-off. */
int device_claim_take(struct managed_device *device);
/* device_claim.c: its disk is about to write up to `size` bytes from where it begins. The same results. */
int device_claim_extend(struct managed_device *device, uint64_t size);
/* device_found.c: kills a worker that was found and claims what was not written down for its disk. */
void device_judge_found(struct managed_device *device);
/* device_claim.c: its worker has found its store locked by `holder` (0: not known). Where that is the worker of
 * another device here, a note names the device instead. */
void device_claim_name_holder(struct managed_device *device, pid_t holder);
/* device_claim.c: its worker has sent a message or was told GO: what it writes to is claimed from now on. */
void device_claim_note_worker(struct managed_device *device);
/* device_claim.c: makes the claim follow the facts of this turn. */
void device_claim_follow(struct managed_device *device);
void device_claim_release(struct managed_device *device);
/* device_claim.c: takes over what an earlier ublkd has written down. Before any device has its turn. */
void device_claim_load(struct managed_device *device);
/* device_claim.c: frees what is held of the claim; it stays written down. */
void device_claim_forget(struct managed_device *device);

/* device_worker.c: finds the worker that serves it, if any. Until it is known whether one lives no other may
 * be started: it would wait for the first one's queues. */
void device_adopt(struct managed_device *device);
/* device_worker.c: its worker was found and has not said yet how far it is; what was told of the disk before
 * that would be a guess. Until when (CLOCK_MONOTONIC) it is expected to speak; 0: it is not waited for. */
uint64_t device_speaks_by(const struct managed_device *device);
/* device_worker.c: starts a worker, for the disk that is there or for a new one. 0 or -errno. */
int device_spawn(struct managed_device *device, const struct device_record *record);
/* device_worker.c: the same, but it is shown as `name`, is known as `uid`, and is the caller's. */
int device_start_worker(struct managed_device *device, const struct device_record *record, const char *name,
        const char *uid, enum worker_lock lock, worker_proc_changed changed, struct worker_proc **ret);
/* device_worker.c: starts a worker that opens the store as `spec` wants it, for a disk that is not there, and
 * is to be killed then. It is known as `uid`, and is the caller's. */
int device_start_trial(struct managed_device *device, const struct device_record *record,
        const struct device_spec *spec, const char *uid, worker_proc_changed changed,
        struct worker_proc **ret);
/* spec_trial.c: who waits for one learns nothing from it. */
void device_spec_trial_forget(struct managed_device *device);
/* device_worker.c: the words that the record holds now. */
struct user_words device_words(const struct device_record *record);
bool user_words_equal(struct user_words one, struct user_words other);
/* device_worker.c: its worker was started for a spec, or a request, before the one that the record holds now:
 * what it fails for is no verdict about that. False while there is no worker. */
bool device_worker_is_stale(const struct managed_device *device, const struct device_record *record);
/* device_worker.c: its worker cannot make the disk that the record wants. False while there is none. */
bool device_worker_is_old(const struct managed_device *device, const struct device_record *record);
/* device_worker.c: kills its worker, and tells of it where users would else be told that it left. */
void device_kill_worker(struct managed_device *device, enum worker_kill why);
/* device_worker.c: its worker is dead: says why, and lets go of it. */
void device_take_death(struct managed_device *device);

/* device_worker.c: its disk is served again: counts the recovery, with the time since the death, and tells of
 * it. Nothing if it has not lost a worker. */
void device_recovered(struct managed_device *device);

/* device_trial.c: finds out whether the next worker could take over, unless that is known. Then calls `then`,
 * once, perhaps before it returns: 0; -ECANCELED: it could not, and the restart is refused, which is told;
 * -ECONNRESET: given up. */
void device_trial_begin(struct managed_device *device, const struct device_record *record,
        void (*then)(struct managed_device *device, int result));
/* device_trial.c: the worker that serves is gone: there is nothing to find out any more. */
void device_trial_give_up(struct managed_device *device);
/* device_trial.c: why the restart that was asked for last was refused; NULL: it was not. Valid until the next
 * one. */
const char *device_trial_refusal(const struct managed_device *device, const struct device_record *record);
/* device_trial.c: frees what there is of it. */
void device_trial_forget(struct managed_device *device);

/* device_note.c: its removal waits for those who have the disk: notes that, with who they are as soon as that
 * is known. */
void device_note_holders(struct managed_device *device, int number, enum device_hold hold);

/* device_shared.c: lets limits and busy polling of its worker, if any, follow the spec. */
void device_shared_apply(struct managed_device *device, const struct device_record *record);
/* device_shared.c: lifts its limits: its disk is about to be stopped, which waits for all that is held back.
 */
void device_shared_lift(struct managed_device *device);
/* device_shared.c: its history, to its region and from there. It is shown, and nothing else: no region is no
 * failure. */
void device_shared_keep_history(const struct managed_device *device);
void device_shared_recall_history(struct managed_device *device);
/* device_shared.c: makes sure that its record is in the runtime directory, as the kernel's disk is of no use
 * to a ublkd without a database otherwise. 0 or -errno, of which one event tells. */
int device_keep_record(struct managed_device *device);
/* device_claim_lost.c: finds the records in the runtime directory that the store has not. Before any device has
 * its turn. 0 or -errno. */
int reconciler_find_lost(struct reconciler *reconciler);
void reconciler_forget_lost(struct reconciler *reconciler);
/* device_claim_lost.c: 0; -EBUSY and a note when these collide with what a disk has that the database lost.
 */
int device_claim_check_lost(struct managed_device *device, const struct backing_claims *claims);
/* device_shared.c: removes the region that its workers shared: with its record. */
void device_shared_forget(struct managed_device *device);

/* device_released.c: a ublk_ctl_released; userdata is the reconciler. */
void devices_released(void *userdata, int number);

/* reconciler_devices.c: an empty index of the devices. */
void reconciler_devices_init(struct reconciler *reconciler);
/* reconciler_devices.c: adds the device; there is none of its name. */
void reconciler_devices_add(struct managed_device *device);
void reconciler_devices_remove(struct managed_device *device);
/* reconciler_devices.c: the device of that name, or NULL. */
struct managed_device *reconciler_find(const struct reconciler *reconciler, const char *name);
/* reconciler_devices.c: the device whose record has that number, or NULL. */
struct managed_device *reconciler_find_number(const struct reconciler *reconciler, int number);
/* reconciler_devices.c: the first device; the one after `device`; NULL: there is none. */
struct managed_device *reconciler_first(const struct reconciler *reconciler);
struct managed_device *reconciler_after(const struct managed_device *device);
#define MANAGED_DEVICE_FOREACH(device, reconciler)                                                           \
        for (struct managed_device *device = reconciler_first(reconciler); device;                           \
                device = reconciler_after(device))

/* reconciler_queue.c: the device that is due next, or NULL. */
struct managed_device *reconciler_queue_pop(struct reconciler *reconciler);
/* reconciler_queue.c: it gets no turn, if one was due. */
void reconciler_queue_remove(struct managed_device *device);
/* reconciler_queue.c: something happened to the device; it gets a turn. */
void device_wake(struct managed_device *device);
/* reconciler.c: the step of this turn is over; result is 0 or -errno. */
void device_step_done(struct managed_device *device, int result);
/* Replaces the note. An allocation that fails leaves none: the status then falls back to the step's name. */
void device_note(struct managed_device *device, enum condition_reason reason, const char *format, ...)
        _printf_(3, 4);
void device_note_clear(struct managed_device *device);
/* Tells of a decision: one event, and so one line of the log. The sentence says what happened and what is
 * done next. */
void device_tell(const struct managed_device *device, enum event_type type, enum condition_reason reason,
        const char *format, ...) _printf_(4, 5);
static inline uint64_t monotonic_now(void)
{
        return clock_usec(CLOCK_MONOTONIC);
}

/* device_stable_path.c: the condition of that name, as the worker sees it. 0 or -ENOMEM. */
int device_stable_path(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
/* Makes it an event when it is about to become what it was not. */
void device_stable_path_tell(const struct managed_device *device, const struct device_condition *before,
        const struct device_condition *now);

/* device_report.c: makes the record's status from the facts of this turn. next_try: CLOCK_MONOTONIC, or
 * UINT64_MAX. Returns 0 or -errno. */
int device_report(const struct managed_device *device, const struct device_record *record, uint64_t next_try);
