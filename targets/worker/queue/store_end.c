/* SPDX-License-Identifier: MIT */
/* Whether the backing store still reaches to the end of the disk. */
#include "targets/worker/queue/store_end.h"

#include <errno.h>
#include <unistd.h>

void store_end_open(struct store_end *end, const struct target_device *device, const struct shared *shared)
{
        *end = (struct store_end){
                .device = device,
                .shared = shared,
                .control = device_region_control(shared->region),
                .looks = device->linear_end_known && (device->linear || device->target->reaches_end),
        };
        store_end_round(end);
}

static bool note_cut(struct store_end *end, uint64_t there)
{
        shared_fault_latch(end->shared, REGION_FAULT_CUT, STATS_OTHER, EIO, there);
        end->holds = false;
        return false;
}

/* Not inlined: what it has on its stack would cost the others the stack protector's checks. */
__attribute__((noinline)) static bool look_at_tree(struct store_end *end)
{
        const struct target_device *device = end->device;
        uint64_t there = 0;

        if (!device->target->reaches_end || device->target->reaches_end(device, &there))
                return true;
        return note_cut(end, there);
}

/* The size first: the disk grows only after its store has grown. */
bool store_end_look(struct store_end *end)
{
        const struct target_device *device = end->device;
        uint64_t needed = device->linear_offset + target_size(device);
        off_t there;

        end->known = true;
        if (!end->holds)
                return false;
        if (!device->linear)
                return look_at_tree(end);
        there = lseek(device->files[device->linear_file], 0, SEEK_END); /* no code uses the position */
        return there < 0 || (uint64_t)there >= needed || note_cut(end, (uint64_t)there);
}
