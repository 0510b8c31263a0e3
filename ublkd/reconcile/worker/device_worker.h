/* SPDX-License-Identifier: MIT */
/* The worker of a device: started, adopted, killed, reaped. */
#pragma once

#include "ublkd/reconcile/parts/device_worker_part.h"

#include <stdbool.h>
#include <stdint.h>

struct device_record;
struct managed_device;

/* Why a worker is killed. */
enum worker_kill {
        KILL_UNWANTED, /* it serves a disk that is not wanted or was removed */
        KILL_TO_REPLACE, /* another one replaces it, ublkd does not quiesce this disk, and its program is too old to leave */
        KILL_UNREACHABLE, /* another one replaces it, and it does not read its messages */
        KILL_STUCK,       /* it did not finish a step in time */
        /* No request of its disk ends: */
        KILL_STOPPED,  /* a signal or a debugger has stopped it */
        KILL_SPINNING, /* it does not come back to its queues */
        KILL_UNAWARE,  /* it does not know of the requests */
        _WORKER_KILL_MAX
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
