/* SPDX-License-Identifier: MIT */
/* The input of plan_want(), from the record of a device and the view of a turn. */
#include "ublkd/reconcile/view/device_wish.h"
#include "ublkd/reconcile/view/spec_features.h"

#include "ublkd/kernel/kernel_feature.h"
#include "ublkd/model/device_cookie.h"

#include <string.h>

struct plan_wish device_wish(const struct device_record *record, const struct wish_view *view, uint64_t now)
{
        const struct device_options *options = record->spec ? &record->spec->options : NULL;
        const struct turn_view *turn = view->turn;
        bool present = turn->facts.kernel != KERNEL_ABSENT;
        bool unready = turn->facts.kernel == KERNEL_ABSENT || turn->facts.kernel == KERNEL_ADDED;

        return (struct plan_wish){
                .deleting = record->deleting,
                .forced = record->deleting && record->forced,
                .enabled = device_record_enabled(record)
                           && !(unready
                                   && (spec_unsupported(record->spec, view->features)
                                           || spec_not_allowed(record->spec, view->allows_tests))),
                .kernel_is_old = present && device_cookie_epoch(turn->kernel.cookie) != record->epoch,
                .worker_is_old = view->worker_is_old,
                .worker_is_outdated = view->worker_is_outdated,
                .handover_until = record->spec ? view->handover_until : 0, /* no other worker can start */
                .manual = options && options->recovery.trigger == TRIGGER_MANUAL,
                .held = strcmp(record->held_boot, view->boot_id) == 0,
                .recover_requested = record->recover_requested,
                .kernel = turn->facts.kernel,
                .worker = turn->facts.worker,
                .size_wanted = turn->geometry.wanted,
                .size_of_worker = view->size_of_worker,
                .size_of_disk =
                        kernel_has_feature(turn->kernel.flags, KERNEL_FEATURE_GROW) ? turn->geometry.size : 0,
                .lost_since = view->lost_since,
                .give_up_after = options ? options->recovery.give_up_after : 0,
                .now = now,
        };
}
