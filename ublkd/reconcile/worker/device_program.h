/* SPDX-License-Identifier: MIT */
/* The program of the workers: which version ublkd starts now, and which the worker of a device has. */
#pragma once

#include "ublkd/model/device_condition.h"
#include "ublkd/reconcile/parts/device_program_part.h"
#include "ublkd/store/device_record.h"

struct managed_device;
struct reconciler;
struct worker_proc;

/* Begin with the version of ublkd itself; NULL: unknown. */
void device_program_init(struct reconciler *reconciler, const char *version);
/* Learn from a worker that this ublkd has started. A new version gives each device a turn. */
void device_program_note(struct managed_device *device, const struct worker_proc *worker);
/* Write CONDITION_NEEDS_RESTART, or leave *ret untouched. Return 0 or -ENOMEM. */
int device_program_condition(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
