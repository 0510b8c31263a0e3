/* SPDX-License-Identifier: MIT */
/* An operation on one device takes as much work among 10,000 devices as among 100, except for a logarithm.
 * The test counts instructions, so neither the machine nor its load matters. */
#include "tests/unit/check.h"
#include "tests/unit/step_count.h"
#include "tests/unit/ublkd/reconcile/reconciler_many.h"

#include <stdlib.h>

enum { FEW = 100, MANY = 10000 }; /* the limit of the API */

/* Without those that parse a spec or start a disk: a million instructions each, which take minutes to step through.
 * bench/lookups counts them. */
static const enum many_operation operations[] = {
        MANY_STORE_EVENT,
        MANY_EVENT,
        MANY_UEVENT,
        MANY_TURN,
        MANY_PAGE,
        MANY_REMOVE,
        MANY_LOCKED,
        MANY_KEPT,
};

/* The last ones take minutes, too, where the address sanitizer makes so many more of them, and else two thirds of the whole: only
 * ./check --all runs them all. */
static size_t operations_to_run(void)
{
#if defined(__SANITIZE_ADDRESS__)
        return MANY_PAGE + 1;
#else
        return getenv("UBLKD_SCALE_ALL") ? ARRAY_SIZE(operations) : ARRAY_SIZE(operations) - 2;
#endif
}

struct figures {
        unsigned count;
        uint64_t instructions[_MANY_MAX];
};

static void run(void *userdata)
{
        const struct figures *figures = userdata;
        struct world world;

        many_begin(&world, figures->count);
        for (unsigned i = 0; i < operations_to_run(); i++) {
                many_prepare(&world, operations[i], figures->count, i);
                step_count_begin();
                many_measured(&world, operations[i], figures->count, i);
                step_count_end();
                many_settle(&world);
        }
        world_free(&world);
        if (check_failures > 0)
                _exit(EXIT_FAILURE);
}

static void counted(void *userdata, unsigned piece, uint64_t instructions)
{
        struct figures *figures = userdata;

        figures->instructions[operations[piece]] = instructions;
}

int main(void)
{
        struct figures few = {.count = FEW}, many = {.count = MANY};
        int r = step_count(run, counted, &few);

        if (r == CHECK_SKIP) /* tracing is not permitted here */
                return CHECK_SKIP;
        CHECK_INT(r, 0);
        CHECK_INT(step_count(run, counted, &many), 0);
        for (size_t i = 0; i < operations_to_run(); i++) {
                enum many_operation operation = operations[i];
                uint64_t before = few.instructions[operation], after = many.instructions[operation];

                printf("%-12s %8" PRIu64 " instructions among %d devices, %8" PRIu64 " among %d\n",
                        many_operation_to_string(operation), before, FEW, after, MANY);
                CHECK(before > 0 && after > 0);
                CHECK(after <= 2 * before);
        }
        return check_report();
}
