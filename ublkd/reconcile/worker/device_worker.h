/* SPDX-License-Identifier: MIT */
/* The worker of a device: started, adopted, killed, reaped. */
#pragma once

#include "ublkd/proto/device_region.h"
#include "ublkd/reconcile/view/user_request.h"
#include "ublkd/workers/worker_proc.h"

struct managed_device;

/* Why a worker is killed. */
enum worker_kill {
        KILL_UNWANTED,   /* it serves a disk that is not wanted or was removed */
        KILL_TO_REPLACE, /* another one replaces it, and ublkd does not quiesce disks with this driver */
        KILL_STUCK,      /* it did not finish a step in time */
        /* No request of its disk ends: */
        KILL_STOPPED,  /* a signal or a debugger has stopped it */
        KILL_SPINNING, /* it does not come back to its queues */
        KILL_UNAWARE,  /* it does not know of the requests */
        _WORKER_KILL_MAX
};

/* Whether a device has a worker, and had one. */
enum worker_state {
        WORKER_NONE,    /* NULL: none was started or found */
        WORKER_UNKNOWN, /* NULL: a worker may exist that could not be adopted yet */
        WORKER_HELD,
        WORKER_KILLED, /* by ublkd, and not reaped yet */
        WORKER_DEAD,   /* NULL: it died */
};

/* Written by device_worker.c alone. Others may read which worker there is, `state`, `lost_since` and the
 * history. */
struct device_process {
        struct worker_proc *worker;
        enum worker_state state;
        struct user_request request; /* that it was started for; all 0 for one that was found */
        uint64_t size;               /* options.size of that spec */
        bool kill_reported;          /* the kill and its cause are reported already */
        bool reported_channel;       /* that it closed its channel and serves on */
        bool hung; /* it served, hung and was killed for that: its death begins a recovery */
        uint64_t
                down_since; /* CLOCK_MONOTONIC: the driver shows that its disk is down since then; 0: it does not */
        uint64_t lost_since; /* CLOCK_MONOTONIC: its disk's I/O waits since then; 0: it does not */
        uint64_t died_at;    /* CLOCK_MONOTONIC: ublkd saw the last serving worker dead; 0: recovered since */
        struct region_history history; /* as in its region, which keeps it for the next supervisor */
};

/* Adopt the worker that serves the device, if there is one. ublkd must know that before it starts a worker,
 * which would wait for the queues of the first one. */
void device_adopt(struct managed_device *device);
/* Decide about a worker that lives and does not listen at its socket, after the driver has answered: kill it, wait for
 * its exit, or drop it because another process serves the disk. Return whether there was one. */
bool device_end_unreachable(struct managed_device *device);
/* Return until when (CLOCK_MONOTONIC) ublkd waits for the HELLO of an adopted worker, before which a report
 * about the disk would be a guess; 0: it does not wait. */
uint64_t device_hello_deadline(const struct managed_device *device);
/* Start a worker, for the existing disk or for a new one, and count a restart. Return 0 or -errno. */
int device_spawn(struct managed_device *device, const struct device_record *record);
/* Return whether the worker was started for an older spec or request than the record has now: its failure
 * does not count for the newer one. False without a worker. */
bool device_worker_is_stale(const struct managed_device *device, const struct device_record *record);
/* Return whether the worker was started for another disk than the record wants. False without a worker. */
bool device_worker_is_old(const struct managed_device *device, const struct device_record *record);
/* Kill the worker, and report the kill, so that its death does not look like an exit. */
void device_kill_worker(struct managed_device *device, enum worker_kill why);
/* Note why the worker died, report it, and free the worker. */
void device_take_death(struct managed_device *device);
/* Note since when the I/O of its disk waits, by the facts of this turn. */
void device_note_loss(struct managed_device *device, uint64_t now);
/* Free the supervisor's side of the worker, which keeps running. */
void device_worker_drop(struct managed_device *device);
/* Count and report a recovery, with the time since the death. Does nothing if the device has not lost a
 * worker. */
void device_recovered(struct managed_device *device);
