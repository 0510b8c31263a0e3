/* SPDX-License-Identifier: MIT */
/* The supervisor accepts the claims and the number of stores of an adopted worker only if an earlier supervisor has
 * written them down. Else a worker under an attacker's control could claim the store of another device, or more of its
 * own. */
#include "ublkd/reconcile/worker/device_found.h"
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/backing/device_claim.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include <string.h>

static bool is_within(const struct backing_claim *claim, const struct backing_claim *written)
{
        return strcmp(claim->key, written->key) == 0 && claim->mapped == written->mapped
               && claim->start >= written->start && claim->end <= written->end
               && (written->writes || !claim->writes);
}

static bool is_written(const struct backing_claims *written, const struct backing_claim *claim)
{
        for (size_t i = 0; i < written->count; i++)
                if (is_within(claim, &written->items[i]))
                        return true;
        return false;
}

static bool are_written(const struct backing_claims *written, const struct backing_claims *claims)
{
        for (size_t i = 0; i < claims->count; i++)
                if (!is_written(written, &claims->items[i]))
                        return false;
        return true;
}

/* Nothing is written down of the disk of an older ublkd, and where the file was removed on the host. */
static bool may_claim(const struct managed_device *device, const struct backing_claims *claims)
{
        const struct backing_claims *written = device_claim_written(device);

        return written ? are_written(written, claims) : !device_claim_is_of_another(device, claims);
}

void device_judge_found(struct managed_device *device)
{
        struct worker_proc *worker = device->process.worker;
        const struct disk_params *params = worker ? worker_proc_params(worker) : NULL;

        if (!params || !worker_proc_adopted(worker) || worker_proc_stage(worker) == WORKER_STAGE_LEAVING)
                return;
        if (!may_claim(device, &params->claims))
                worker_proc_refuse(worker, "it claims another backing store than its disk has");
        else if (device_backing_is_miscounted(device))
                worker_proc_refuse(worker, "it reports another number of backing stores than its disk has");
}
