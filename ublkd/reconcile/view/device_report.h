/* SPDX-License-Identifier: MIT */
/* PURE: makes the status of a device from the view of a turn. */
#pragma once

#include "ublkd/plan/attempt.h"
#include "ublkd/proto/device_region.h"
#include "ublkd/reconcile/view/failure_note.h"
#include "ublkd/reconcile/view/turn_view.h"
#include "ublkd/store/device_store.h"

struct report_worker {
        pid_t pid;
        uint64_t started_at; /* CLOCK_REALTIME */
        const char *version;
        enum data_path fastest; /* AUTO until its params are known */
};

/* What a report depends on, beside the record. */
struct report_view {
        const struct turn_view *turn;
        const struct attempt *attempt;
        const struct failure_note *note;
        const struct region_history *history;
        const struct problem_list *host_problems; /* why the driver cannot be used */
        const struct report_worker *worker;       /* NULL: there is none */
        const char *growth_refusal;  /* why the worker cannot grow to the wanted size; NULL: no refusal */
        const char *restart_refusal; /* why the last requested restart was refused; NULL: it was not */
        enum condition_reason growth_reason, restart_reason; /* of these refusals */
        uint64_t features;                                   /* of the driver, for the disk */
        enum plan_action action;                             /* of this turn */
        bool allows_tests;    /* this ublkd creates disks with targets for tests */
        bool has_control;     /* the control device can be used */
        bool unseen;          /* since its start ublkd has got no answer about the disk */
        bool backing_changed; /* its store was refused */
        bool awaits_udev;     /* the disk is new */
        bool awaits_limits;   /* limits of the spec are not in force yet */
        uint64_t next_try;    /* CLOCK_MONOTONIC, or UINT64_MAX */
        uint64_t now;         /* CLOCK_MONOTONIC */
        uint64_t wall_msec;   /* CLOCK_REALTIME */
};

/* Make the status, without the parts that device_publish.c adds. Return 0 or -errno; the caller clears *ret in both
 * cases. */
int device_report(
        const struct report_view *view, const struct device_record *record, struct device_status *ret);
