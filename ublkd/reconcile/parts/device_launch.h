/* SPDX-License-Identifier: MIT */
/* Starts the processes of a device's workers, with what they have to know. */
#pragma once

#include "ublkd/store/device_store.h"
#include "ublkd/workers/worker_proc.h"

struct managed_device;

/* What ps(1) shows of a worker on trial. */
#define WORKER_TRIAL_NAME "(trial)"

/* Start a worker, for the disk that is there or for a new one. It is shown as `name`, is known as `uid`, and is
 * the caller's. 0 or -errno. */
int device_launch_worker(struct managed_device *device, const struct device_record *record, const char *name,
        const char *uid, enum worker_lock lock, worker_proc_changed changed, struct worker_proc **ret);
/* Start a worker that opens the store as `spec` wants it, for a disk that is not there, and is to be killed
 * then. It is known as `uid`, and is the caller's. */
int device_launch_trial(struct managed_device *device, const struct device_record *record,
        const struct device_spec *spec, const char *uid, worker_proc_changed changed,
        struct worker_proc **ret);
