/* SPDX-License-Identifier: MIT */
/* The open backend of this worker's device, and the disk that comes of it. */
#include "targets/worker/disk/disk.h"

#include "targets/worker/disk/stack_stores.h"
#include "targets/worker/disk/store_locks.h"

#include <inttypes.h>
#include <string.h>

static int open_target(struct disk *disk, struct target_geometry *geometry, struct problem_list *problems)
{
        const struct target *target = disk->device.target;
        int r;

        if (target->device_size > 0) {
                disk->device.state = calloc(1, target->device_size);
                if (!disk->device.state)
                        return -ENOMEM;
        }
        r = target->open(&disk->device, geometry, problems);
        /* A reason there must be, whatever the target did. */
        if (r < 0 && r != -ENOMEM && problems->count == 0) {
                int added = problem_add(problems, -r, "/target", "TargetNotOpened",
                        "The target cannot be opened: %s.", strerror(-r));

                return added < 0 ? added : r;
        }
        return r;
}

static int open_disk(struct disk *disk, const struct disk_wish *wish, struct problem_list *problems)
{
        struct target_geometry geometry = {};
        int r;

        r = open_target(disk, &geometry, problems);
        if (r >= 0) {
                r = disk_geometry(wish, &geometry, disk->device.target, &disk->params, problems);
                if (r < 0 && disk->device.target->close)
                        disk->device.target->close(&disk->device);
        }
        disk->params.path_may_change = geometry.path_may_change;
        disk->params.stable_path = geometry.stable_path;
        backing_claims_clear(&geometry.claims);
        problem_list_clear(&geometry.sharing);
        return r;
}

static void release(struct disk *disk)
{
        for (unsigned i = 0; i < disk->device.file_count; i++)
                close_fd(disk->device.files[i]);
        free(disk->device.state);
        free(disk->device.queues_kept);
        backing_claims_clear(&disk->params.claims);
        problem_list_clear(&disk->params.sharing);
        free(disk->params.stable_path);
        *disk = (struct disk){};
}

/* Nothing of the disk, but which store was refused, and how long that was. */
static struct disk refused(const struct disk *disk)
{
        struct disk nothing = {
                .device = {.store = disk->device.store,
                           .size = disk->device.wanted_size,
                           .linear_offset = disk->device.linear_offset},
        };

        nothing.device.store.given = nothing.device.store.kept = -1;
        return nothing;
}

/* Take over what open_disk() has found. */
static void settle(struct disk *disk, bool is_tree)
{
        struct target_device *device = &disk->device;

        device->read_only = disk->params.read_only;
        device->size = disk->params.size;
        device->logical_block_size = disk->params.logical_block_size;
        device->queues = disk->params.queues;
        device->queue_depth = disk->params.queue_depth;
        if (is_tree) {
                stack_settle(device);
                disk->witness_count = stack_witnesses(device, disk->witnesses);
        } else if (device->store.kept >= 0)
                disk->witnesses[disk->witness_count++] = device->store.kept;
        disk->is_tree = is_tree;
}

int disk_open(const struct worker_config *config, int store, struct disk *ret, struct problem_list *problems)
{
        struct disk disk = {
                .device = {.target = config->target,
                           .name = config->name,
                           .config = config->options,
                           .read_only = config->wish.read_only,
                           .wanted_size = config->wish.size,
                           .wanted_block_size = config->wish.block_size,
                           .live = config->live,
                           .store = {.given = store,
                                .kept = -1,
                                .expected = config->expected,
                                .expected_in_this_boot = config->expected_in_this_boot,
                                .served = config->exists,
                                .has_data = config->wish.has_data,
                                .shared = config->shared,
                                .user = config->store_user}},
                .exists = config->exists,
                .kept = config->kept,
        };
        int r;

        r = open_disk(&disk, &config->wish, problems);
        disk.device.store.given = close_fd(disk.device.store.given);
        if (r < 0) {
                *ret = refused(&disk);
                release(&disk);
                return r;
        }
        settle(&disk, config->stack != NULL);
        if (config->lock != WORKER_LOCK_NEVER)
                store_locks_want(&disk);
        *ret = disk;
        return 0;
}

static int measure(struct disk *disk, struct problem_list *problems)
{
        const struct target *target = disk->device.target;
        uint64_t there = 0;
        int r = target->measure ? target->measure(&disk->device, &there) : 0;

        if (r < 0) {
                int added = problem_add(problems, -r, "/target", "BackingUnreadable",
                        "The size of the backing store cannot be found out: %s.", strerror(-r));

                return added < 0 ? added : r;
        }
        disk->params.size_max = disk_size_max(there, disk->params.logical_block_size);
        if (disk->params.size_max == 0) /* which would mean that this program cannot grow a disk */
                disk->params.size_max = disk->params.logical_block_size;
        return 0;
}

static int check_growth(const struct disk *disk, uint64_t size, struct problem_list *problems)
{
        int r = 0;

        if (size > disk->params.size_max)
                r = disk_size_refuse(
                        disk->params.size_max, size, disk->params.size_max < disk->params.size, problems);
        else if (size % disk->params.logical_block_size != 0)
                r = problem_add(problems, EINVAL, "/size", "SizeNotAMultiple",
                        "The size of %" PRIu64 " bytes is not a multiple of the disk's block size, %" PRIu32
                        " bytes.",
                        size, disk->params.logical_block_size);
        if (r < 0)
                return r;
        return problems->count > 0 ? -EINVAL : 0;
}

int disk_grow(struct disk *disk, uint64_t size, struct problem_list *problems)
{
        int r = measure(disk, problems);

        if (r >= 0)
                r = check_growth(disk, size, problems);
        if (r < 0 || size <= disk->params.size)
                return r;
        r = store_locks_grow(disk, size, problems);
        if (r < 0)
                return r;
        disk->params.size = size;
        if (!disk->is_tree
                || disk->device.linear) /* else each store is claimed as far as the tree could reach */
                backing_claims_resize(&disk->params.claims, size);
        __atomic_store_n(&disk->device.size, size, __ATOMIC_RELAXED);
        return 0;
}

bool disk_is_cut(const struct disk *disk, uint64_t *ret)
{
        const struct target_device *device = &disk->device;

        if (!device->store.end_known || device->store.end >= device->linear_offset + target_size(device))
                return false;
        *ret = device->store.end;
        return true;
}

void disk_close(struct disk *disk)
{
        if (disk->device.target && disk->device.target->close)
                disk->device.target->close(&disk->device);
        release(disk);
}
