/* SPDX-License-Identifier: MIT */
/* The locks on the backing stores of a disk. */
#include "targets/worker/disk/store_locks.h"

#include "targets/worker/disk/backing_lock.h"
#include "targets/worker/disk/stack.h"
#include "targets/worker/disk/stack_stores.h"

#include <errno.h>
#include <sys/stat.h>

/* Write what the disk lies in with `size` bytes, one range for each store. */
static unsigned find_ranges(
        const struct disk *disk, uint64_t size, struct disk_range ret[static TARGET_NODES_MAX])
{
        const struct target_device *device = &disk->device;
        unsigned count = 1;

        if (device->linear)
                ret[0] = (struct disk_range){
                        .range = {.fd = device->store.kept >= 0 ? device->store.kept
                                                                : device->files[device->linear_file],
                                  .start = device->linear_offset,
                                  .end = device->linear_offset + size}
                };
        else
                count = disk->is_tree ? stack_ranges(device, ret) : 0;
        for (unsigned i = 0; i < count; i++)
                ret[i].range.writes = !disk->params.read_only;
        return count;
}

/* Return what holds for all of them. */
static enum disk_lock all_of(const struct disk *disk)
{
        static const enum disk_lock order[] = {DISK_LOCK_WANTED, DISK_LOCK_BESIDE_READERS, DISK_LOCK_HELD};

        for (size_t k = 0; k < ARRAY_SIZE(order); k++)
                for (unsigned i = 0; i < disk->range_count; i++)
                        if (disk->ranges[i].lock == order[k])
                                return order[k];
        return DISK_LOCK_NONE;
}

void store_locks_want(struct disk *disk)
{
        disk->range_count = find_ranges(disk, disk->params.size, disk->ranges);
        for (unsigned i = 0; i < disk->range_count; i++)
                disk->ranges[i].lock = DISK_LOCK_WANTED;
        disk->lock = all_of(disk);
}

static bool is_wanted(enum disk_lock lock)
{
        return lock == DISK_LOCK_WANTED || lock == DISK_LOCK_BESIDE_READERS;
}

static int lock_range(struct disk *disk, unsigned number)
{
        struct disk_range *range = &disk->ranges[number];
        int r = backing_lock(&range->range);

        if (r == -EAGAIN) {
                disk->contended = number;
                if (disk->exists && backing_lock_beside_readers(&range->range)) {
                        range->lock = DISK_LOCK_BESIDE_READERS;
                        return 0;
                }
        }
        if (r >= 0)
                range->lock = DISK_LOCK_HELD;
        return r;
}

/* Return the same order for the same bytes, whichever disk asks, and by whichever node of a block device. */
static int compare_ranges(const struct backing_range *one, const struct backing_range *other)
{
        struct stat left = {}, right = {};
        dev_t device, other_device;

        (void)fstat(one->fd, &left);
        (void)fstat(other->fd, &right);
        device = S_ISBLK(left.st_mode) ? left.st_rdev : left.st_dev;
        other_device = S_ISBLK(right.st_mode) ? right.st_rdev : right.st_dev;
        if (device != other_device)
                return device < other_device ? -1 : 1;
        if (!S_ISBLK(left.st_mode) && left.st_ino != right.st_ino)
                return left.st_ino < right.st_ino ? -1 : 1;
        return one->start < other->start ? -1 : one->start > other->start;
}

/* Write the numbers of the ranges in the order in which they are locked. Of two disks that want the same bytes in several stores, one
 * gets all of them: were each to lock in the order of its own tree, each could keep the other out. */
static void order_ranges(const struct disk *disk, unsigned order[static TARGET_NODES_MAX])
{
        for (unsigned i = 0; i < disk->range_count; i++) {
                unsigned place = i;

                for (; place > 0
                        && compare_ranges(&disk->ranges[i].range, &disk->ranges[order[place - 1]].range) < 0;
                        place--)
                        order[place] = order[place - 1];
                order[place] = i;
        }
}

int disk_lock(struct disk *disk)
{
        bool without[TARGET_NODES_MAX] = {};
        unsigned order[TARGET_NODES_MAX];
        int error = 0;

        if (!is_wanted(disk->lock))
                return 0;
        order_ranges(disk, order);
        for (unsigned k = 0; k < disk->range_count; k++) {
                unsigned i = order[k];
                int r = is_wanted(disk->ranges[i].lock) ? lock_range(disk, i) : 0;

                if (r == -EAGAIN) {
                        disk->lock = all_of(disk);
                        return r; /* with what stands behind it, also the error of one before it, another time */
                }
                without[i] = r < 0;
                error = error < 0 ? error : r;
        }
        for (unsigned i = 0; i < disk->range_count; i++)
                if (without[i])
                        disk->ranges[i].lock = DISK_LOCK_NONE;
        disk->lock = all_of(disk);
        return error;
}

static int explain(const struct disk *disk, const struct backing_range *range, unsigned number,
        const char *pointer, struct problem_list *problems, pid_t *ret_holder)
{
        char of_node[TARGET_POINTER_SIZE];

        if (!pointer && disk->device.linear)
                pointer = "/target";
        if (!pointer) {
                stack_pointer(&disk->device, disk->ranges[number].node, of_node);
                pointer = of_node;
        }
        return backing_lock_explain(range, pointer, problems, ret_holder);
}

int disk_lock_explain(const struct disk *disk, struct problem_list *problems, pid_t *ret_holder)
{
        return explain(
                disk, &disk->ranges[disk->contended].range, disk->contended, NULL, problems, ret_holder);
}

/* Lock what is new in `wider`. */
static int lock_new(const struct disk *disk, unsigned number, const struct backing_range *wider,
        struct problem_list *problems)
{
        enum disk_lock lock = disk->ranges[number].lock;
        struct backing_range range = *wider;
        pid_t holder;
        int r, added;

        range.start = disk->ranges[number].range.end;
        if (range.end <= range.start || (lock != DISK_LOCK_HELD && lock != DISK_LOCK_BESIDE_READERS))
                return 0;
        if (lock == DISK_LOCK_BESIDE_READERS && backing_lock_beside_readers(&range))
                return 0;
        r = backing_lock(&range);
        if (r >= 0)
                return 0;
        added = explain(disk, &range, number, "/size", problems, &holder);
        return added < 0 ? added : r;
}

int store_locks_grow(struct disk *disk, uint64_t size, struct problem_list *problems)
{
        struct disk_range wider[TARGET_NODES_MAX];
        unsigned count = find_ranges(disk, size, wider);

        if (disk->range_count == 0) /* it serves without */
                return 0;
        for (unsigned i = 0; i < count; i++) {
                int r = lock_new(disk, i, &wider[i].range, problems);

                if (r < 0)
                        return r;
        }
        for (unsigned i = 0; i < count; i++)
                if (wider[i].range.end > disk->ranges[i].range.end)
                        disk->ranges[i].range.end = wider[i].range.end;
        return 0;
}
