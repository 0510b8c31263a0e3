/* SPDX-License-Identifier: MIT */
/* Which turns need no look at the kernel: those on the way of a recovery, shortly after the last look. */
#include "ublkd/reconcile/device_look.h"
#include "ublkd/base/clock.h"
#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/kernel/kernel_feature.h"
#include "ublkd/reconcile/parts/managed_device.h"

enum { RECENT_USEC = 50 * 1000 };

bool device_command_looks(enum plan_action action)
{
        return action == ACTION_BEGIN_RECOVERY || action == ACTION_END_RECOVERY;
}

static bool has_just_seen(const struct managed_device *device)
{
        return device->step.seen_at > 0 && monotonic_now() - device->step.seen_at <= RECENT_USEC
               && attempt_succeeded(&device->attempt) && device->view.facts.kernel == KERNEL_DOWN;
}

/* Not for a driver that cancels late: what counts there is when it shows the disk as down (attempt_may_begin()). */
bool device_may_begin_unasked(const struct managed_device *device, const struct device_record *record)
{
        return device->step.action == ACTION_SPAWN && device->view.worker_seen == PLAN_WORKER_PARAMS
               && has_just_seen(device) && !record->deleting
               && !kernel_cancels_late(device->env->config.host->features)
               && ublk_ctl_guards(device->env->ctl);
}

bool device_may_end_unasked(const struct managed_device *device)
{
        return device->step.action == ACTION_BEGIN_RECOVERY && device->view.worker_seen == PLAN_WORKER_READY
               && has_just_seen(device) && ublk_ctl_guards(device->env->ctl);
}
