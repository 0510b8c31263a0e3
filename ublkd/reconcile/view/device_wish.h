/* SPDX-License-Identifier: MIT */
/* PURE: the input of plan_want(). */
#pragma once

#include "ublkd/plan/plan.h"
#include "ublkd/reconcile/view/turn_view.h"
#include "ublkd/store/device_store.h"

/* What the input depends on, beside the record. */
struct wish_view {
        const struct turn_view *turn;
        const char *boot_id;
        uint64_t features;       /* of the driver, for the disk */
        uint64_t size_of_worker; /* bytes, from its params; 0: no worker has reported them */
        uint64_t lost_since;     /* CLOCK_MONOTONIC since when the I/O of the disk waits; 0: it does not */
        uint64_t handover_until; /* see struct plan_wish */
        bool allows_tests;       /* this ublkd creates disks with targets for tests */
        bool worker_is_old;      /* it was started for another disk than the record wants */
        bool worker_is_outdated; /* it was started before the last restart request that was not refused */
};

/* Return what plan_want() takes. now: CLOCK_MONOTONIC. */
struct plan_wish device_wish(const struct device_record *record, const struct wish_view *view, uint64_t now);
