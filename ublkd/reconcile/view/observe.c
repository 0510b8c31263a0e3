/* SPDX-License-Identifier: MIT */
/* The facts of one device. */
#include "ublkd/reconcile/view/observe.h"

enum plan_kernel observe_kernel(
        const struct kernel_device *device, const char *uid, enum plan_worker worker, bool *ret_foreign)
{
        static const enum plan_kernel by_state[_KERNEL_STATE_MAX] = {
                [KERNEL_STATE_DEAD] = KERNEL_ADDED,
                [KERNEL_STATE_LIVE] = KERNEL_LIVE,
                [KERNEL_STATE_QUIESCED] = KERNEL_DOWN,
                [KERNEL_STATE_FAIL_IO] = KERNEL_DOWN,
        };

        *ret_foreign = device && !device_cookie_matches(device->cookie, uid);
        if (!device || *ret_foreign)
                return KERNEL_ABSENT;
        return plan_kernel(by_state[device->state],
                !ublk_ctl_missing(ublk_ctl_flags(KERNEL_RECOVERY_QUEUE), device->flags), worker);
}

enum plan_worker observe_worker(const struct worker_proc *worker)
{
        static const enum plan_worker by_stage[_WORKER_STAGE_MAX] = {
                [WORKER_STAGE_OPENING] = PLAN_WORKER_STARTING,
                [WORKER_STAGE_OPEN] = PLAN_WORKER_PARAMS,
                [WORKER_STAGE_FETCHING] = PLAN_WORKER_FETCHING,
                [WORKER_STAGE_READY] = PLAN_WORKER_READY,
                [WORKER_STAGE_SERVING] = PLAN_WORKER_SERVING,
                [WORKER_STAGE_LEAVING] = PLAN_WORKER_LEAVING,
        };

        return worker ? by_stage[worker_proc_stage(worker)] : PLAN_WORKER_NONE;
}

bool observe_worker_is_old(const struct worker_proc *worker, uint16_t epoch)
{
        enum plan_worker stage = observe_worker(worker);

        return stage != PLAN_WORKER_NONE && stage != PLAN_WORKER_STARTING && stage != PLAN_WORKER_LEAVING
               && worker_proc_epoch(worker) != epoch;
}
