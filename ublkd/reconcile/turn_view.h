/* SPDX-License-Identifier: MIT */
/* What a turn has seen of a device: the kernel's disk and the worker. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/plan/plan.h"
#include "ublkd/reconcile/device_geometry.h"

/* Written by device_turn.c alone, at the beginning of a turn (device_add.c clears `stranger` when it takes another
 * number); all other files only read it. Where the kernel could
 * not be asked it is that of the turn before, but for the worker. */
struct turn_view {
        struct plan_facts facts;
        enum plan_worker worker_seen; /* when the kernel was asked */
        struct kernel_device kernel;  /* meaningful unless facts.kernel is KERNEL_ABSENT */
        struct device_geometry geometry;
        bool stranger; /* our number is taken by a device that is not ours */
};
