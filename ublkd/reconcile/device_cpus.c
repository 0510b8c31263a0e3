/* SPDX-License-Identifier: MIT */
/* Where the kernel wants the queues of a disk to run: asked once, when the disk is made, for the block
 * layer's map of its queues never changes after that. A recovery then takes no question. */
#include "ublkd/reconcile/managed_device.h"

#include "ublkd/base/cpu_list.h"

#include <stdio.h>

static void ask(struct managed_device *device);

void device_cpus_forget(struct managed_device *device)
{
        free(device->queue_cpus);
        device->queue_cpus = NULL;
        device->queue_cpus_known = 0;
}

static int append(struct managed_device *device, const struct kernel_device *kernel)
{
        _cleanup_free_ char *list = NULL;
        char *text;
        int r = format_cpu_list(kernel->queue_cpus, sizeof(kernel->queue_cpus), &list);

        if (r >= 0
                && asprintf(&text, "%s%s%s", device->queue_cpus ? device->queue_cpus : "",
                           device->queue_cpus ? ";" : "", list)
                           < 0)
                r = -ENOMEM;
        if (r < 0)
                return r;
        free(device->queue_cpus);
        device->queue_cpus = text;
        device->queue_cpus_known++;
        return 0;
}

/* They are no condition for a disk: without them its queues run anywhere. */
static void on_affinity(void *userdata, int result, const struct kernel_device *kernel)
{
        struct managed_device *device = userdata;

        device->call = NULL;
        if (result >= 0)
                result = device->worker ? append(device, kernel) : -ECONNRESET;
        if (result >= 0 && device->queue_cpus_known < worker_proc_params(device->worker)->queues) {
                ask(device);
                return;
        }
        if (result < 0)
                device_cpus_forget(device);
        device->queue_cpus_then(device, result);
}

static void ask(struct managed_device *device)
{
        const struct device_record *record = device_store_get(device->reconciler->config.store, device->name);
        int r = ublk_ctl_get_affinity(device->reconciler->ctl, record->number, device->queue_cpus_known,
                on_affinity, device, &device->call);

        if (r < 0)
                on_affinity(device, r, NULL);
}

void device_cpus_learn(struct managed_device *device, void (*then)(struct managed_device *device, int result))
{
        if (device->queue_cpus) {
                then(device, 0);
                return;
        }
        device->queue_cpus_then = then;
        ask(device);
}
