/* SPDX-License-Identifier: MIT */
/* The kept memory of the disk, divided among the targets of a tree. */
#include "targets/worker/disk/stack_kept.h"
#include "targets/target_tree_kept.h"
#include "ublkd/proto/device_region.h"

#include <errno.h>
#include <stdlib.h>

/* No two areas of a disk have the same seed: a record log rejects what another target has written. */
enum { SEEDS_OF_ONE = DEVICE_REGION_QUEUES_MAX + 1 };

/* keeper: index among the targets that have kept memory; targets without kept memory do not change the seed. */
static struct target_kept part_of(
        const struct target_kept *whole, uint64_t offset, uint64_t size, unsigned keeper)
{
        if (size == 0 || !whole->memory) /* a test may serve without a region */
                return (struct target_kept){};
        return (struct target_kept){
                .memory = (char *)whole->memory + offset,
                .size = size,
                .seed = whole->seed + (uint64_t)keeper * SEEDS_OF_ONE,
                .state = whole->state,
        };
}

static int divide_queues(struct target_device *device, const struct target_device *disk, uint64_t offset,
        uint64_t size, unsigned keeper)
{
        if (!disk->queues_kept || size == 0)
                return 0;
        device->queues_kept = calloc(disk->queues, sizeof(*device->queues_kept));
        if (!device->queues_kept)
                return -ENOMEM;
        for (unsigned i = 0; i < disk->queues; i++)
                device->queues_kept[i] = part_of(&disk->queues_kept[i], offset, size, keeper);
        return 0;
}

int stack_kept_divide(struct stack *stack, const struct target_device *disk)
{
        struct target_tree_kept kept;
        unsigned keeper = 0;
        int r = 0;

        target_tree_kept(stack->config->tree, &kept);
        for (unsigned i = 0; r >= 0 && i < stack_count(stack); i++) {
                const struct target_desc *desc = stack->config->tree->nodes[i].desc;
                struct target_device *device = &stack->devices[i];

                device->kept = part_of(&disk->kept, kept.offsets[i].disk, desc->kept_disk_bytes, keeper);
                r = divide_queues(device, disk, kept.offsets[i].queue, desc->kept_queue_bytes, keeper);
                keeper += desc->kept_disk_bytes > 0 || desc->kept_queue_bytes > 0;
        }
        return r;
}

struct target_kept *stack_kept_of_queue(const struct stack *stack, unsigned number, unsigned queue)
{
        struct target_kept *all = stack->devices[number].queues_kept;

        return all ? &all[queue] : NULL;
}

void stack_kept_close(struct stack *stack)
{
        for (unsigned i = 0; stack->devices && i < stack_count(stack); i++) {
                free(stack->devices[i].queues_kept);
                stack->devices[i].queues_kept = NULL;
        }
}
