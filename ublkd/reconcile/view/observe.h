/* SPDX-License-Identifier: MIT */
/* The facts of one device, as the kernel and the worker state them. Nothing is cached, nothing is decided. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/model/device_cookie.h"
#include "ublkd/plan/plan.h"
#include "ublkd/store/device_store.h"
#include "ublkd/workers/worker_proc.h"

/* What the kernel's answer to GET_DEV_INFO means for the device `uid` whose worker is that far. `device`:
 * NULL when there is none. *ret_foreign: the number is taken by a device that is not ours. */
enum plan_kernel observe_kernel(
        const struct kernel_device *device, const char *uid, enum plan_worker worker, bool *ret_foreign);

/* `worker` may be NULL. */
enum plan_worker observe_worker(const struct worker_proc *worker);

/* It was made for another epoch of its device. Not of one that has not said yet what it was made for, nor of
 * one that leaves: it may never have said it, and whether its disk is old is the kernel's to tell. `worker`
 * may be NULL. */
bool observe_worker_is_old(const struct worker_proc *worker, uint16_t epoch);

/* The disk that /sys shows: what the kernel froze at START_DEV. Bytes. 0 or -errno. */
int observe_disk_geometry(int number, uint64_t *ret_size, uint32_t *ret_logical_block_size);
