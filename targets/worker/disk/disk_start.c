/* SPDX-License-Identifier: MIT */
/* Kept memory is found, and the device started.
 *
 * The targets find what they left in all areas of kept memory, or zeroes in all. Each area has a mark
 * of its own, so a worker that dies between two of them leaves a mixture, which counts as not settled. */
#include "targets/worker/disk/disk_start.h"

#include "ublkd/proto/region_faults.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t settled_mark = 1; /* struct region_kept_head */

/* Return the heads, one after another; NULL behind the last. */
static struct region_kept_head *head_of(const struct disk *disk, unsigned number)
{
        const struct region_kept_map *map = &disk->kept;
        unsigned of_disk = map->disk_bytes > 0, of_queues = map->queue_bytes > 0 ? disk->device.queues : 0;

        if (number < of_disk)
                return region_kept_disk(map);
        return number < of_disk + of_queues ? region_kept_queue(map, number - of_disk) : NULL;
}

static bool is_settled(const struct disk *disk)
{
        struct region_kept_head *head;

        for (unsigned i = 0; (head = head_of(disk, i)); i++)
                if (__atomic_load_n(&head->settled, __ATOMIC_ACQUIRE) != settled_mark)
                        return false;
        return true;
}

/* disk_started() sets the marks of whole memory in order. Any others are not those of a worker that has died early: what was kept may have
 * been good. */
static bool is_scribbled(const struct disk *disk)
{
        struct region_kept_head *head;
        bool ended = false;

        for (unsigned i = 0; (head = head_of(disk, i)); i++) {
                uint64_t mark = __atomic_load_n(&head->settled, __ATOMIC_RELAXED);

                if (mark > settled_mark || (mark == settled_mark && ended))
                        return true;
                ended = mark != settled_mark;
        }
        return false;
}

static enum target_kept_state state_of(const struct disk *disk)
{
        if (is_settled(disk))
                return TARGET_KEPT_FOUND;
        return disk->kept.lost || is_scribbled(disk) ? TARGET_KEPT_LOST : TARGET_KEPT_FRESH;
}

static struct target_kept area_of(
        struct region_kept_head *head, uint64_t size, uint64_t seed, enum target_kept_state state)
{
        struct target_kept kept = {
                .memory = (char *)head + REGION_KEPT_HEAD,
                .size = size,
                .seed = seed,
                .state = state,
        };

        if (state != TARGET_KEPT_FOUND)
                memset(kept.memory, 0, size);
        return kept;
}

/* No worker before this one lives, so nothing else stores there. The supervisor does not look at the marks: so this worker
 * latches the loss that they show, before it zeroes anything. */
static int find_kept(struct disk *disk, struct region_control *control)
{
        const struct region_kept_map *map = &disk->kept;
        enum target_kept_state state = state_of(disk);

        if (is_scribbled(disk))
                (void)region_fault_latch(control, REGION_FAULT_FLUSH, STATS_OTHER, ENODATA, 0);
        if (map->disk_bytes > 0)
                disk->device.kept = area_of(region_kept_disk(map), map->disk_bytes, map->seed, state);
        if (map->queue_bytes == 0)
                return 0;
        disk->device.queues_kept = calloc(disk->device.queues, sizeof(*disk->device.queues_kept));
        if (!disk->device.queues_kept)
                return -ENOMEM;
        for (unsigned i = 0; i < disk->device.queues; i++)
                disk->device.queues_kept[i] =
                        area_of(region_kept_queue(map, i), map->queue_bytes, map->seed + 1 + i, state);
        return 0;
}

static bool is_lost(const struct disk *disk)
{
        return disk->device.kept.state == TARGET_KEPT_LOST
               || (disk->device.queues_kept && disk->device.queues_kept[0].state == TARGET_KEPT_LOST);
}

/* Why the target does not start, where it has not added the reason. */
static int add_problem(const struct disk *disk, int error, struct problem_list *problems)
{
        if (is_lost(disk) && error == -ENODATA)
                return problem_add(problems, -error, "/target", "KeptMemoryLost",
                        "The memory that the target kept for the disk is lost, and the target does not serve "
                        "the disk without it; stop the device and start it for a new disk, which lacks what "
                        "lay only there.");
        return problem_add(problems, -error, "/target", "TargetNotOpened",
                "The target cannot be started: %s.", strerror(-error));
}

int disk_start(struct disk *disk, struct region_control *control, struct problem_list *problems)
{
        const struct target *target = disk->device.target;
        int r = find_kept(disk, control), added;

        if (r < 0 || !target->start_device)
                return r;
        r = target->start_device(&disk->device, problems);
        if (r >= 0 || r == -ENOMEM || problems->count > 0)
                return r;
        added = add_problem(disk, r, problems);
        return added < 0 ? added : r;
}

/* Marks that show a loss do so until the last of them is set. */
void disk_started(struct disk *disk)
{
        bool backwards = is_scribbled(disk);
        unsigned count = 0;

        while (head_of(disk, count))
                count++;
        for (unsigned i = 0; i < count; i++)
                __atomic_store_n(&head_of(disk, backwards ? count - 1 - i : i)->settled, settled_mark,
                        __ATOMIC_RELEASE);
}
