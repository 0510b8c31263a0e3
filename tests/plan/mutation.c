/* SPDX-License-Identifier: MIT */
/* Whether the tests of the table would notice a broken table: every row is removed, widened in each column,
 * and given each other action, and the rules over all facts (walk.c) or the simulation must find fault with
 * it; and whether the simulation would notice helpers for control commands that get their part wrong.
 *   mutation [--list]     --list: also what found each mutant
 * Mutants that answer every combination as the table does are no mutants. Those that survive must be known.
 */
#include "sim.h"

/* The table itself, which is nobody's business elsewhere. */
#include "ublkd/plan/plan.c"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
        ROWS = sizeof(table) / sizeof(table[0]),
        SCHEDULES = 4000, /* for a mutant; the table itself passes many more */
};

static struct plan_row mutant[ROWS];

static enum plan_action plan_by_mutant(const struct plan_facts *facts)
{
        const struct plan_row *row = mutant;

        while (row < mutant + ROWS - 1
                && (!in(row->want, facts->want) || !in(row->kernel, facts->kernel)
                        || !in(row->worker, facts->worker) || !in(row->trouble, facts->trouble)))
                row++;
        return row->action;
}

static bool is_equivalent(void)
{
        for (unsigned i = 0; i < _WANT_MAX * _KERNEL_MAX * _PLAN_WORKER_MAX * _TROUBLE_MAX; i++) {
                struct plan_facts facts = {
                        .want = i % _WANT_MAX,
                        .kernel = i / _WANT_MAX % _KERNEL_MAX,
                        .worker = i / (_WANT_MAX * _KERNEL_MAX) % _PLAN_WORKER_MAX,
                        .trouble = i / (_WANT_MAX * _KERNEL_MAX * _PLAN_WORKER_MAX),
                };

                if (plan(&facts) != plan_by_mutant(&facts))
                        return false;
        }
        return true;
}

struct tally {
        unsigned equivalent, walked, simulated, both, survived;
};

static const char *simulate(struct world *world, plan_function decide)
{
        const char *broken = NULL;

        for (uint64_t seed = 1; seed <= SCHEDULES && !broken; seed++)
                broken = schedule_run(world, seed, decide, false);
        return broken;
}

static void try_mutant(struct world *world, unsigned row, const char *what, const char *detail, bool list,
        struct tally *tally)
{
        struct plan_facts facts;
        const char *walked, *simulated;

        if (is_equivalent()) {
                tally->equivalent++;
                return;
        }
        walked = walk_all_facts(plan_by_mutant, &facts);
        simulated = simulate(world, plan_by_mutant);
        tally->walked += walked != NULL;
        tally->simulated += simulated != NULL;
        tally->both += walked && simulated;
        tally->survived += !walked && !simulated;
        if (list || (!walked && !simulated))
                printf("row %2u (%s) %s%s: %s; %s\n", row + 1, plan_action_to_string(table[row].action), what,
                        detail, walked ? walked : "no rule broken",
                        simulated ? simulated : "every schedule good");
}

static void remove_row(struct world *world, unsigned row, bool list, struct tally *tally)
{
        memcpy(mutant, table, sizeof(table));
        memmove(mutant + row, mutant + row + 1, (ROWS - row - 1) * sizeof(mutant[0]));
        try_mutant(world, row, "removed", "", list, tally);
}

static void widen_row(struct world *world, unsigned row, bool list, struct tally *tally)
{
        static const char *const names[] = {"want", "kernel", "worker", "trouble"};

        for (unsigned column = 0; column < 4; column++) {
                memcpy(mutant, table, sizeof(table));
                *(unsigned *[]){&mutant[row].want, &mutant[row].kernel, &mutant[row].worker,
                        &mutant[row].trouble}[column] = 0;
                try_mutant(world, row, "for any ", names[column], list, tally);
        }
}

static void change_action(struct world *world, unsigned row, bool list, struct tally *tally)
{
        for (unsigned action = 0; action < _ACTION_MAX; action++) {
                memcpy(mutant, table, sizeof(table));
                mutant[row].action = action;
                try_mutant(world, row, "does instead: ", plan_action_to_string(action), list, tally);
        }
}

/* How many mistakes of the helpers nobody notices. */
static unsigned try_mistakes(struct world *world, bool list)
{
        static const char *const names[_HELPER_MISTAKE_MAX] = {
                [FORGETS_WHAT_WAS_GIVEN_UP] = "forget what was given up",
                [RELEASES_WHEN_IT_KILLS] = "release what a helper holds when they kill it",
                [NEVER_RELEASES] = "never release what was given up",
                [KEEPS_A_HELPER_THAT_HANGS] = "keep a helper that hangs",
                [RETIRES_AND_DOES_NOT_KILL] = "give a helper up and do not kill it",
                [KEEPS_THE_SLOT_OF_THE_DEAD] = "keep the slot of one that is dead",
                [SWALLOWS_CALLS_OF_THE_DEAD] = "say nothing of the calls of one that died",
                [HAS_NO_DEADLINE] = "wait for ever",
        };
        unsigned survived = 0;

        for (world->mistake = NO_MISTAKE + 1; world->mistake < _HELPER_MISTAKE_MAX; world->mistake++) {
                const char *broken = simulate(world, plan);

                survived += !broken;
                if (list || !broken)
                        printf("helpers %s: %s\n", names[world->mistake],
                                broken ? broken : "every schedule good");
        }
        world->mistake = NO_MISTAKE;
        return survived;
}

int main(int argc, char **argv)
{
        struct world *world = calloc(1, sizeof(*world));
        bool list = argc > 1 && strcmp(argv[1], "--list") == 0;
        struct tally tally = {};
        unsigned mistakes;

        if (!world)
                return 2;
        for (unsigned row = 0; row < ROWS - 1; row++) {
                remove_row(world, row, list, &tally);
                widen_row(world, row, list, &tally);
                change_action(world, row, list, &tally);
        }
        printf("%u rows: %u mutants found by the rules, %u by %u schedules (%u by both), %u survived, %u "
               "were equivalent\n",
                ROWS, tally.walked, tally.simulated, SCHEDULES, tally.both, tally.survived, tally.equivalent);
        mistakes = try_mistakes(world, list);
        printf("%u mistakes of helpers, %u survived\n", _HELPER_MISTAKE_MAX - 1, mistakes);
        free(world);
        return tally.survived + mistakes > 0;
}
