/* SPDX-License-Identifier: MIT */
/* PURE: what is wanted of a device. */
#pragma once

#include "ublkd/plan/plan.h"
#include "ublkd/reconcile/view/turn_view.h"
#include "ublkd/store/device_store.h"

/* What it depends on, beside the record. */
struct wish_view {
        const struct turn_view *turn;
        const char *boot_id;
        uint64_t features;       /* the driver's, that its disk can have */
        uint64_t size_of_worker; /* bytes, of its params; 0: there is no worker that has reported them */
        uint64_t lost_since;     /* CLOCK_MONOTONIC: its disk's I/O waits since then; 0: it does not */
        bool worker_is_old;      /* it cannot make the disk that the record wants */
        bool worker_is_outdated; /* it was started before a restart that was asked for, and not refused */
};

/* Return what plan_want() takes. now: CLOCK_MONOTONIC. */
struct plan_wish device_wish(const struct device_record *record, const struct wish_view *view, uint64_t now);
