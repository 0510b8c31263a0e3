/* SPDX-License-Identifier: MIT */
/* Compares what two looks have seen. */
#include "targets/worker/queue/late.h"

static uint64_t ended_of(const struct op_stats *stats)
{
        uint64_t sum = 0;

        for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
                sum += stats->latency[i];
        return sum;
}

bool late_look(struct late *late, const struct queue_stats *stats)
{
        bool result = false;

        for (unsigned i = 0; i < _STATS_OP_MAX; i++) {
                uint64_t ended = ended_of(&stats->ops[i]), under_way = stats->ops[i].begun - ended;

                result = result
                         || (under_way > 0 && late->ops[i].under_way > 0 && ended == late->ops[i].ended);
                late->ops[i].under_way = under_way;
                late->ops[i].ended = ended;
        }
        return result;
}

bool late_is_under_way(const struct late *late)
{
        for (unsigned i = 0; i < _STATS_OP_MAX; i++)
                if (late->ops[i].under_way > 0)
                        return true;
        return false;
}
