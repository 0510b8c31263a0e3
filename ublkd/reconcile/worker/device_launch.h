/* SPDX-License-Identifier: MIT */
/* Starts the workers of a device, each with its CONFIG. */
#pragma once

#include "ublkd/store/device_store.h"
#include "ublkd/workers/worker_proc.h"

struct managed_device;

/* What ps(1) shows of a preflight worker. */
#define WORKER_PREFLIGHT_NAME "(preflight)"

/* Start a worker for the existing disk or for a new one. ps(1) shows it as `name`; its files in the runtime
 * directory are of `uid`. Return 0 and a worker that the caller frees, or -errno. */
int device_launch_worker(struct managed_device *device, const struct device_record *record, const char *name,
        const char *uid, enum worker_lock lock, worker_proc_changed changed, struct worker_proc **ret);
/* Start a worker that opens the store as `spec` wants it, without a disk. Its files in the runtime directory
 * are of `uid`. The caller kills it when it has opened the store. Return 0 and a worker that the caller
 * frees, or -errno. */
int device_launch_preflight(struct managed_device *device, const struct device_record *record,
        const struct device_spec *spec, const char *uid, worker_proc_changed changed,
        struct worker_proc **ret);
