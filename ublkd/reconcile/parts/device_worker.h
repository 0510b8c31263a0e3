/* SPDX-License-Identifier: MIT */
/* The worker of a device: started, adopted, killed, reaped. */
#pragma once

#include "ublkd/proto/device_region.h"
#include "ublkd/reconcile/view/user_words.h"
#include "ublkd/workers/worker_proc.h"

struct managed_device;

/* Why a worker is killed. */
enum worker_kill {
        KILL_UNWANTED,   /* it serves what is not wanted, or not there any more */
        KILL_TO_REPLACE, /* it is to be replaced, and the driver cannot have it finish and leave */
        KILL_STUCK,      /* it did not do its part in time */
        _WORKER_KILL_MAX
};

/* Whether `worker` of a device is there, and was before. */
enum worker_state {
        WORKER_NONE,    /* NULL: none was started or found */
        WORKER_UNKNOWN, /* NULL: there may be one that could not be adopted yet */
        WORKER_HELD,
        WORKER_KILLED, /* by us, and its death is not seen yet */
        WORKER_DEAD,   /* NULL: it died */
};

/* Written by device_worker.c alone. Others may read which worker there is, `state`, `lost_since` and the history. */
struct device_process {
        struct worker_proc *worker;
        enum worker_state state;
        struct user_words words; /* that it was started for; all 0 for one that was found */
        uint64_t size;           /* options.size of that spec */
        bool kill_told;          /* that we killed it, and why, is reported already */
        uint64_t lost_since;     /* CLOCK_MONOTONIC: its disk's I/O waits since then; 0: it does not */
        uint64_t died_at; /* CLOCK_MONOTONIC: who served it last was seen to be dead; 0: recovered since */
        struct region_history history; /* as in its region, which keeps it for the next supervisor */
};

/* Find the worker that serves it, if any. Until it is known whether one lives no other may be started: it would
 * wait for the first one's queues. */
void device_adopt(struct managed_device *device);
/* Its worker was found and has not said yet how far it is; what was reported of the disk before that would be a
 * guess. Return until when (CLOCK_MONOTONIC) it is expected to speak; 0: it is not waited for. */
uint64_t device_speaks_by(const struct managed_device *device);
/* Start a worker, for the disk that is there or for a new one, and count a restart. 0 or -errno. */
int device_spawn(struct managed_device *device, const struct device_record *record);
/* Return whether its worker was started for a spec, or a request, before the one that the record holds now: what
 * it fails for is no verdict about that. False while there is no worker. */
bool device_worker_is_stale(const struct managed_device *device, const struct device_record *record);
/* Return whether its worker cannot make the disk that the record wants. False while there is none. */
bool device_worker_is_old(const struct managed_device *device, const struct device_record *record);
/* Kill its worker, and report that where users would else read that it left. */
void device_kill_worker(struct managed_device *device, enum worker_kill why);
/* Its worker is dead: record why it died, and free it. */
void device_take_death(struct managed_device *device);
/* Note since when the I/O of its disk waits, by the facts of this turn. */
void device_note_loss(struct managed_device *device, uint64_t now);
/* Free what is held of its worker, which lives on. */
void device_worker_forget(struct managed_device *device);
/* Its disk is served again: count the recovery, with the time since the death, and report it. Nothing if it has
 * not lost a worker. */
void device_recovered(struct managed_device *device);
