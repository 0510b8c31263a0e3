/* SPDX-License-Identifier: MIT */
/* The states of a disk, as the driver has them. */
#include "tests/stand_in/kernel_disk.h"

#include <errno.h>

/* ---- commands ---- */

int kernel_disk_add(struct kernel_disk *disk, const struct kernel_device_request *request, uint64_t features)
{
        if (disk->exists)
                return -EEXIST;
        *disk = (struct kernel_disk){
                .exists = true,
                .cookie = request->cookie,
                .flags = (request->flags & features) | (features & FEATURE_TRY_STOP),
                .queues = request->queues,
                .queue_depth = request->queue_depth,
                .max_io_size = request->max_io_size,
                .holder = NO_PROCESS,
        };
        return 0;
}

struct kernel_device kernel_disk_info(int number, const struct kernel_disk *disk)
{
        return (struct kernel_device){
                .number = number,
                .state = disk->state,
                .cookie = disk->cookie,
                .flags = disk->flags,
                .queues = disk->queues,
                .queue_depth = disk->queue_depth,
                .max_io_size = disk->max_io_size,
                .server_pid = disk->server_pid,
        };
}

int kernel_disk_set_params(struct kernel_disk *disk, uint64_t size)
{
        if (disk->was_started)
                return -EACCES;
        disk->size = size;
        disk->has_params = true;
        return 0;
}

int kernel_disk_update_size(struct kernel_disk *disk, uint64_t size)
{
        if (!(disk->flags & FEATURE_GROW))
                return -EOPNOTSUPP;
        disk->size = size;
        return 0;
}

static int check_worker(const struct kernel_disk *disk, int worker)
{
        if (!disk->fetched_all)
                return KERNEL_BLOCKS;
        return disk->holder == worker ? 0 : -EINVAL;
}

int kernel_disk_check_start(const struct kernel_disk *disk, int worker)
{
        if (disk->state != KERNEL_STATE_DEAD)
                return -EEXIST;
        if (!disk->has_params || disk->deleted)
                return -EINVAL;
        return check_worker(disk, worker);
}

int kernel_disk_check_end_recovery(const struct kernel_disk *disk, int worker)
{
        if (!(disk->flags & FEATURE_RECOVERY))
                return -EINVAL;
        if (disk->state == KERNEL_STATE_DEAD || disk->state == KERNEL_STATE_LIVE)
                return -EBUSY;
        return check_worker(disk, worker);
}

void kernel_disk_go_live(struct kernel_disk *disk)
{
        disk->state = KERNEL_STATE_LIVE;
        disk->was_started = true;
        disk->begun = false;
        disk->refusals = 0;
}

int kernel_disk_recognise(const struct kernel_disk *disk, uint64_t cookie)
{
        if (!disk->exists)
                return -ENODEV;
        return disk->cookie == cookie ? 0 : -ESTALE;
}

int kernel_disk_begin_recovery(struct kernel_disk *disk, bool refuses_second)
{
        if (!(disk->flags & FEATURE_RECOVERY) || (refuses_second && disk->begun))
                return -EINVAL;
        if (disk->holder != NO_PROCESS || disk->state == KERNEL_STATE_DEAD
                || disk->state == KERNEL_STATE_LIVE)
                return -EBUSY;
        disk->begun = true;
        return 0;
}

void kernel_disk_stop(struct kernel_disk *disk)
{
        disk->state = KERNEL_STATE_DEAD;
        disk->unnoticed = false;
        disk->spoilt = disk->spoilt || disk->fetched_any;
        disk->fetched_all = false;
}

int kernel_disk_check_quiesce(const struct kernel_disk *disk)
{
        return disk->flags & FEATURE_QUIESCE ? 0 : -EOPNOTSUPP;
}

bool kernel_disk_is_over(const struct kernel_disk *disk)
{
        return disk->deleted && disk->openers == 0 && disk->holder == NO_PROCESS;
}

/* ---- workers ---- */

int kernel_disk_check_attach(const struct kernel_disk *disk)
{
        if (!disk->exists || disk->deleted)
                return -ENOENT;
        return disk->holder == NO_PROCESS ? 0 : -EBUSY;
}

void kernel_disk_attach(struct kernel_disk *disk, int worker)
{
        disk->holder = worker;
        disk->fetched_any = disk->fetched_all = false;
}

int kernel_disk_fetch(struct kernel_disk *disk, int worker, bool all)
{
        if (!disk->exists || disk->deleted || disk->holder != worker)
                return -ENODEV;
        if (disk->spoilt || disk->state == KERNEL_STATE_LIVE)
                return -EBUSY;
        if (disk->state == KERNEL_STATE_DEAD ? disk->was_started : !disk->begun)
                return -EINVAL;
        disk->fetched_any = true;
        disk->fetched_all = all;
        return 0;
}

/* Its queues are reset only by START_USER_RECOVERY, which not every kernel gives after a half-done fetch. */
void kernel_disk_lose_worker(struct kernel_disk *disk, bool refuses_second)
{
        if (disk->state == KERNEL_STATE_LIVE && disk->unnoticed) {
                disk->fetched_any = false;
        } else if (disk->state == KERNEL_STATE_LIVE) {
                disk->state = !(disk->flags & FEATURE_RECOVERY) ? KERNEL_STATE_DEAD
                              : disk->flags & FEATURE_FAIL_IO   ? KERNEL_STATE_FAIL_IO
                                                                : KERNEL_STATE_QUIESCED;
                disk->begun = false;
        } else if (disk->fetched_any) {
                if (disk->state == KERNEL_STATE_DEAD || (refuses_second && !disk->fetched_all))
                        disk->spoilt = true;
                disk->begun = disk->spoilt;
        }
        disk->fetched_all = false;
}

void kernel_disk_release(struct kernel_disk *disk)
{
        disk->holder = NO_PROCESS;
        disk->fetched_any = disk->fetched_all = false;
}
