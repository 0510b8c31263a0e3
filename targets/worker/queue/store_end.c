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
                .looks = device->linear && device->linear_end_known,
        };
        store_end_round(end);
}

/* The size first: the disk grows only after its store has grown. */
bool store_end_look(struct store_end *end)
{
        const struct target_device *device = end->device;
        uint64_t needed = device->linear_offset + target_size(device);
        off_t there;

        end->known = true;
        if (!device->linear || !end->holds)
                return end->holds;
        there = lseek(device->files[device->linear_file], 0, SEEK_END); /* no code uses the position */
        if (there < 0 || (uint64_t)there >= needed)
                return true;
        shared_fault_latch(end->shared, REGION_FAULT_CUT, STATS_OTHER, EIO, (uint64_t)there);
        end->holds = false;
        return false;
}
