/* SPDX-License-Identifier: MIT */
/* What the queues have put into the region for the supervisor to show. */
#include "targets/worker/news.h"
#include "ublkd/proto/region_faults.h"

/* It only rises. */
static uint64_t news_so_far(const struct region_control *control)
{
        uint64_t sum = 0;

        for (unsigned i = 0; i < _REGION_FAULT_MAX; i++)
                sum += __atomic_load_n(&control->faults[i].count, __ATOMIC_ACQUIRE);
        return sum + __atomic_load_n(&control->space.changes, __ATOMIC_ACQUIRE)
               + __atomic_load_n(&control->action.ends, __ATOMIC_ACQUIRE)
               + __atomic_load_n(&control->errors.changes, __ATOMIC_ACQUIRE);
}

void news_send(struct news *news, const struct shared *shared, struct chan *chan)
{
        uint64_t now_there = news_so_far(device_region_control(shared->region));

        if (now_there == news->reported)
                return;
        /* A supervisor that does not read now has NEWS to read, and looks at the region after it. It must not lose the
         * connection for that. */
        if (chan_offer(chan, &(struct worker_msg){.type = WORKER_MSG_NEWS}) >= 0)
                news->reported = now_there;
}
