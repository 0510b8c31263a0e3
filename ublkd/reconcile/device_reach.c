/* SPDX-License-Identifier: MIT */
/* Whether the store of a disk can still be reached without the disk. The API asks before it accepts a removal. */
#include "ublkd/reconcile/device_reach.h"
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/backing/device_path.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_devices.h"

static enum backing_reach device_reach(const struct managed_device *device, const struct device_spec *next)
{
        static const enum backing_reach by_path[_PATH_STATE_MAX] = {
                [PATH_UNKNOWN] = BACKING_REACH_UNKNOWN,
                [PATH_SAME] = BACKING_REACH_AT_PATH,
                [PATH_OTHER] = BACKING_REACH_ELSEWHERE,
                [PATH_GONE] = BACKING_REACH_ELSEWHERE,
        };
        if (device_backing_is_unnamed(&device->backing))
                return BACKING_REACH_UNNAMED;
        return by_path[device_path_state(device, next)];
}

enum backing_reach reconciler_reach(
        struct reconciler *reconciler, const char *name, const struct device_spec *next)
{
        const struct managed_device *device = reconciler_find(reconciler, name);

        return device ? device_reach(device, next) : BACKING_REACH_UNKNOWN;
}
