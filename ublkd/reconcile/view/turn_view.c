/* SPDX-License-Identifier: MIT */
/* What a turn has seen of a device: the kernel's disk and the worker. */
#include "ublkd/reconcile/view/turn_view.h"
#include "ublkd/reconcile/view/device_geometry.h"
#include "ublkd/reconcile/view/observe.h"

void turn_view_stay(struct turn_view *view)
{
        view->facts.worker = view->worker_seen;
}

void turn_view_see(
        struct turn_view *view, const struct device_record *record, const struct kernel_device *kernel)
{
        view->facts.kernel = observe_kernel(kernel, record->uid, view->worker_seen, &view->foreign);
        if (view->facts.kernel != KERNEL_ABSENT)
                view->kernel = *kernel;
        turn_view_stay(view);
}

int turn_view_disk(const struct turn_view *view)
{
        bool has_size = view->facts.kernel == KERNEL_LIVE || view->facts.kernel == KERNEL_DOWN;

        return has_size ? view->kernel.number : -1;
}

bool turn_view_is_off(const struct turn_view *view, const struct device_record *record)
{
        return view->facts.kernel == KERNEL_ABSENT && record->spec && !device_record_enabled(record);
}

void turn_view_measure(struct turn_view *view, const struct device_record *record,
        const struct disk_params *params, const struct device_geometry *disk)
{
        view->geometry = *disk;
        view->geometry.wanted =
                record->spec ? device_geometry_wanted((uint64_t)record->spec->options.size, params) : 0;
}
