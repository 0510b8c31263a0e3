/* SPDX-License-Identifier: MIT */
/* The program of the workers. A package may replace it before it restarts the manager, and may replace it alone; so
 * what ublkd starts now is what the last worker that it has started says. An adopted worker is not asked: it may be of
 * any version. */
#include "ublkd/reconcile/worker/device_program.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_devices.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"
#include "ublkd/reconcile/view/program_condition.h"

#include <stdio.h>
#include <string.h>

void device_program_init(struct reconciler *reconciler, const char *version)
{
        snprintf(reconciler->program.version, sizeof(reconciler->program.version), "%s",
                version ? version : "");
}

void device_program_note(struct managed_device *device, const struct worker_proc *worker)
{
        struct worker_program *program = &device->reconciler->program;
        const char *version = worker_proc_version(worker);

        if (worker_proc_adopted(worker) || !*version || !*program->version
                || strcmp(version, program->version) == 0)
                return;
        snprintf(program->version, sizeof(program->version), "%s", version);
        MANAGED_DEVICE_FOREACH (other, device->reconciler)
                device_wake(other);
}

int device_program_condition(
        const struct managed_device *device, const struct device_record *record, struct device_condition *ret)
{
        const struct worker_proc *worker = device->process.worker;

        return program_condition(record,
                worker && !worker_proc_death(worker) ? worker_proc_version(worker) : "",
                device->reconciler->program.version, device->env->config.host->features, ret);
}
