/* SPDX-License-Identifier: MIT */
/* What the supervisor may change while a queue serves, read out of the region. On the queue's thread. */
#pragma once

#include "ublkd/proto/device_region.h"

struct queue_control {
        void *region;
        uint32_t sequence; /* of the values that were read last; they begin with 0: none */
};

/* Return whether the values have changed, and fill *ret with the new ones. One load if nothing is new. */
static inline bool queue_control_changed(struct queue_control *control, struct region_values *ret)
{
        if (__builtin_expect(device_region_sequence(control->region) == control->sequence, 1))
                return false;
        return device_region_get_values(control->region, &control->sequence, ret);
}
