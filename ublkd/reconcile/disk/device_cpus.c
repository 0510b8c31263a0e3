/* SPDX-License-Identifier: MIT */
/* The CPUs on which the kernel wants the queues of a disk to run. */
#include "ublkd/reconcile/disk/device_cpus.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/values/cpu_list.h"

#include <stdio.h>

static void ask(struct device_cpus *cpus);

void device_cpus_drop(struct device_cpus *cpus)
{
        if (cpus->call)
                ublk_ctl_call_cancel(cpus->call);
        free(cpus->text);
        *cpus = (struct device_cpus){};
}

static int append(struct device_cpus *cpus, const struct kernel_device *kernel)
{
        _cleanup_free_ char *list = NULL;
        char *text;
        int r = format_cpu_list(kernel->queue_cpus, sizeof(kernel->queue_cpus), &list);

        if (r < 0)
                return r;
        if (asprintf(&text, "%s%s%s", cpus->text ? cpus->text : "", cpus->text ? ";" : "", list) < 0)
                return -ENOMEM;
        free(cpus->text);
        cpus->text = text;
        cpus->known++;
        return 0;
}

/* They are optional: without them the queues of a disk run anywhere. */
static void on_affinity(void *userdata, int result, const struct kernel_device *kernel)
{
        struct device_cpus *cpus = userdata;
        void (*then)(void *userdata, int result) = cpus->then;
        void *user = cpus->userdata;

        cpus->call = NULL;
        if (result >= 0)
                result = append(cpus, kernel);
        if (result >= 0 && cpus->known < cpus->queues) {
                ask(cpus);
                return;
        }
        if (result < 0)
                device_cpus_drop(cpus);
        then(user, result);
}

static void ask(struct device_cpus *cpus)
{
        int r = ublk_ctl_get_affinity(cpus->ctl, cpus->number, cpus->known, on_affinity, cpus, &cpus->call);

        if (r < 0)
                on_affinity(cpus, r, NULL);
}

void device_cpus_learn(struct device_cpus *cpus, struct ublk_ctl *ctl, int number, uint16_t queues,
        void (*then)(void *userdata, int result), void *userdata)
{
        if (cpus->text) {
                then(userdata, 0);
                return;
        }
        *cpus = (struct device_cpus){
                .ctl = ctl, .number = number, .queues = queues, .then = then, .userdata = userdata};
        ask(cpus);
}
