/* SPDX-License-Identifier: MIT */
/* The counters of a device, from the memory that its workers share. */
#include "ublkd/tasks/region_stats.h"

#include "ublkd/base/cleanup.h"

int region_stats_read(struct runtime_dir *dir, const struct device_record *record, struct device_stats **ret)
{
        _cleanup_close_ int fd = runtime_dir_open_region(dir, record->uid);

        if (fd == -ENOENT && record->status.phase == PHASE_LIVE)
                return -ESTALE;
        return fd < 0 ? fd : device_stats_read(fd, ret);
}
