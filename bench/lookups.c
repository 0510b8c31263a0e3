/* SPDX-License-Identifier: MIT */
/* Runs what the supervisor does with one of many devices: the real reconciler and the store in memory, with
 * the fake kernel and workers of the unit tests.
 *
 * usage: lookups COUNT
 *
 * Under callgrind with --instr-atstart=no it dumps the instructions of each operation, ROUNDS times, under
 * the name of the operation. bench/lookups makes a table of them. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_many.h"

#include <stdlib.h>
#include <valgrind/callgrind.h>

enum { ROUNDS = 5 };

static void measure(struct world *world, enum many_operation operation, unsigned count, unsigned round)
{
        many_prepare(world, operation, count, round);
        CALLGRIND_START_INSTRUMENTATION;
        CALLGRIND_ZERO_STATS;
        many_measured(world, operation, count, round);
        CALLGRIND_DUMP_STATS_AT(many_operation_to_string(operation));
        CALLGRIND_STOP_INSTRUMENTATION;
        many_settle(world);
}

int main(int argc, char **argv)
{
        unsigned count = argc == 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
        struct world world;

        if (count == 0) {
                fputs("usage: lookups COUNT\n", stderr);
                return EXIT_FAILURE;
        }
        many_begin(&world, count);
        for (unsigned i = 0; i < ROUNDS * _MANY_MAX; i++)
                measure(&world, i % _MANY_MAX, count, i);
        world_free(&world);
        return check_report();
}
