/* SPDX-License-Identifier: MIT */
/* PURE: the facts of one device, from the kernel and the worker. Caches nothing and decides nothing. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/model/device_cookie.h"
#include "ublkd/plan/plan.h"
#include "ublkd/store/device_store.h"
#include "ublkd/workers/worker_proc.h"

/* Return what the kernel's answer to GET_DEV_INFO means for the device `uid` and the state of its worker.
 * device: NULL if the kernel has none. *ret_foreign: a foreign disk has the number. */
enum plan_kernel observe_kernel(
        const struct kernel_device *device, const char *uid, enum plan_worker worker, bool *ret_foreign);

/* Return the state of the worker, which may be NULL. */
enum plan_worker observe_worker(const struct worker_proc *worker);

/* Return whether the worker was started for another epoch. False for a worker before its HELLO, and for an
 * exiting one: it may never have sent its epoch, and the kernel knows whether the disk is old. `worker` may
 * be NULL. */
bool observe_worker_is_old(const struct worker_proc *worker, uint16_t epoch);
