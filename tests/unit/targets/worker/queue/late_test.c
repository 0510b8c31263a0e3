/* SPDX-License-Identifier: MIT */
/* Which requests are late. */
#include "targets/worker/queue/late.h"
#include "tests/unit/check.h"

static struct queue_stats stats;

static void begin(enum stats_op op)
{
        stats.ops[op].begun++;
}

static void end(enum stats_op op)
{
        stats.ops[op].latency[op]++;
}

static void each_kind_is_late_from_the_second_look_on(void)
{
        for (unsigned op = 0; op < _STATS_OP_MAX; op++) {
                struct late late = {};

                CHECK(!late_look(&late, &stats));
                CHECK(!late_is_under_way(&late));
                begin(op);
                CHECK(!late_look(&late, &stats)); /* it may have come just now */
                CHECK(late_is_under_way(&late));
                CHECK(late_look(&late, &stats));
                CHECK(late_look(&late, &stats));
                begin(op); /* arrivals do not count */
                CHECK(late_look(&late, &stats));
                end(op);
                CHECK(!late_look(&late, &stats));
                CHECK(late_look(&late, &stats));
                end(op);
                CHECK(!late_look(&late, &stats));
                CHECK(!late_is_under_way(&late));
        }
}

/* Reads that end do not need the thread that a write waits for. */
static void one_kind_is_late_beside_another(void)
{
        struct late late = {};

        begin(STATS_WRITE);
        for (unsigned i = 0; i < 3; i++) {
                begin(STATS_READ);
                CHECK_INT(late_look(&late, &stats), i > 0);
                end(STATS_READ);
        }
        end(STATS_WRITE);
        CHECK(!late_look(&late, &stats));
}

int main(void)
{
        each_kind_is_late_from_the_second_look_on();
        one_kind_is_late_beside_another();
        return check_report();
}
