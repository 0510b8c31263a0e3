/* SPDX-License-Identifier: MIT */
/* Whether the store of a disk can still be reached without the disk. Asked before a client takes it away. */
#include "ublkd/reconcile/managed_device.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Asks what the kernel has in memory, never a server. */
static bool is_unnamed(const struct device_backing *backing)
{
        struct statx info;

        return backing->held
               && statx(backing->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK, &info) == 0
               && S_ISREG(info.stx_mode) && (info.stx_mask & STATX_NLINK) && info.stx_nlink == 0;
}

static enum backing_reach device_reach(const struct managed_device *device)
{
        static const enum backing_reach by_path[_PATH_STATE_MAX] = {
                [PATH_UNKNOWN] = BACKING_REACH_UNKNOWN,
                [PATH_SAME] = BACKING_REACH_AT_PATH,
                [PATH_OTHER] = BACKING_REACH_ELSEWHERE,
                [PATH_GONE] = BACKING_REACH_ELSEWHERE,
        };
        const struct path_view *view = device->path.watch ? path_watch_view(device->path.watch) : NULL;

        if (is_unnamed(&device->backing))
                return BACKING_REACH_UNNAMED;
        return view ? by_path[view->state] : BACKING_REACH_UNKNOWN;
}

enum backing_reach reconciler_reach(struct reconciler *reconciler, const char *name)
{
        const struct managed_device *device = reconciler_find(reconciler, name);

        return device ? device_reach(device) : BACKING_REACH_UNKNOWN;
}
