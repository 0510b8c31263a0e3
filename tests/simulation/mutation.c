/* SPDX-License-Identifier: MIT */
/* Whether the tests of the table would notice a broken table: every row is removed, widened in each column,
 * and given each other action, and the rules over all facts (walk.c) or the simulation must find fault with
 * it; and whether the simulation would notice helpers for control commands that get their part wrong.
 *   mutation [--few] [--list]     --few: fewer schedules, within seconds; --list: also what found each mutant
 * A mutant that answers every combination as the table does is not a mutant. A surviving one must be listed.
 * Most are found by the rules as well. So a simulation that sees nothing any more would not show by a survivor: it must find
 * as many as its floor says.
 *
 * A schedule in which the reconciler never asks about facts for which mutant and table differ is the same
 * schedule with either, so only the others are run. A mutant may well lead the reconciler where it crashes,
 * or never returns; so each has a process of its own, and that is as good as a rule that is broken.
 *
 * Where no schedule asks, no schedule can find it, and the rules over all facts are what remains. A mutant without one of
 * these three rows is among those:
 *  - row 3: the STOP_DEV of a disk that was given up does not end, so its worker is stopped. The simulated kernel holds up
 *    the STOP_DEV of a live disk alone (is_held_up() in sim_kernel.c). That of a disk that is DOWN takes effect.
 *  - row 12 (held) and row 15 (wanted): a disk that cannot be recovered stays live without a worker for
 *    UNNOTICED_LIMIT, two minutes (attempt.c). The simulated kernel notices a death within one (kernel_worker_died()).
 * Others are about facts that cannot be: a disk is given up only while it is DOWN (may_give_up() in plan.c). */
#include "sim.h"

/* The table itself, which no other file may see. */
#include "ublkd/plan/plan.c"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
        ROWS = sizeof(table) / sizeof(table[0]),
        SCHEDULES_MAX = 10000,
        COMBINATIONS = _WANT_MAX * _KERNEL_MAX * _PLAN_WORKER_MAX * _TROUBLE_MAX,
        FINDING_SIZE = 128,
};

/* How much is tried, and how much of that the simulation must find. A change of the reconciler or of the simulation makes
 * other schedules of the same seeds, and they find a few more or fewer: the floors have room for that. */
struct extent {
        unsigned schedules;     /* for a mutant; the table itself passes many more */
        unsigned mistake_times; /* as many for a mistake of helpers: several must hang in one schedule */
        unsigned patience;      /* seconds of a CPU, for all schedules of a mutant */
        unsigned mutants;       /* that the simulation finds, at least */
        unsigned mistakes;      /* of the helpers that it finds, at least */
};

static const struct extent whole = {.schedules = SCHEDULES_MAX,
        .mistake_times = 10,
        .patience = 60,
        .mutants = 470, /* of 485 that were found */
        .mistakes = _HELPER_MISTAKE_MAX - 1};
static const struct extent few = {.schedules = 1000,
        .mistake_times = 1,
        .patience = 6,
        .mutants = 425, /* of 442 */
        .mistakes = 5}; /* of 6 */
static const struct extent *extent = &whole;

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

static struct plan_facts facts_of(unsigned combination)
{
        return (struct plan_facts){
                .want = combination % _WANT_MAX,
                .kernel = combination / _WANT_MAX % _KERNEL_MAX,
                .worker = combination / (_WANT_MAX * _KERNEL_MAX) % _PLAN_WORKER_MAX,
                .trouble = combination / (_WANT_MAX * _KERNEL_MAX * _PLAN_WORKER_MAX),
        };
}

static unsigned combination_of(const struct plan_facts *facts)
{
        return facts->want + _WANT_MAX * facts->kernel + _WANT_MAX * _KERNEL_MAX * facts->worker
               + _WANT_MAX * _KERNEL_MAX * _PLAN_WORKER_MAX * facts->trouble;
}

/* A set of combinations. */
struct facts_set {
        uint64_t words[(COMBINATIONS + 63) / 64];
};

static void set_add(struct facts_set *set, unsigned combination)
{
        set->words[combination / 64] |= UINT64_C(1) << combination % 64;
}

static bool sets_meet(const struct facts_set *one, const struct facts_set *other)
{
        for (size_t i = 0; i < sizeof(one->words) / sizeof(one->words[0]); i++)
                if (one->words[i] & other->words[i])
                        return true;
        return false;
}

/* Those that mutant and table answer differently. False: there is none. */
static bool find_differences(struct facts_set *ret)
{
        bool found = false;

        *ret = (struct facts_set){};
        for (unsigned i = 0; i < COMBINATIONS; i++) {
                struct plan_facts facts = facts_of(i);

                if (plan(&facts) == plan_by_mutant(&facts))
                        continue;
                set_add(ret, i);
                found = true;
        }
        return found;
}

/* What the reconciler asks about in each schedule, with the table as it is. */
static struct facts_set asked[SCHEDULES_MAX + 1], *asked_now;

static void note_facts(const struct plan_facts *facts)
{
        set_add(asked_now, combination_of(facts));
}

/* NULL; or the rule that the table itself breaks. */
static const char *learn_what_is_asked(struct world *world)
{
        const char *broken = NULL;

        world->on_facts = note_facts;
        for (uint64_t seed = 1; seed <= extent->schedules && !broken; seed++) {
                asked_now = &asked[seed];
                broken = schedule_run(world, seed, plan, false);
        }
        world->on_facts = NULL;
        return broken;
}

struct tally {
        unsigned equivalent, walked, simulated, both, unasked, survived;
};

/* Written by the process that runs the schedules. */
static char *finding;

static void run_schedules(
        struct world *world, plan_function decide, const struct facts_set *differences, unsigned times)
{
        const char *broken = NULL;

        (void)setitimer(ITIMER_PROF,
                &(const struct itimerval){.it_value = {.tv_sec = extent->patience * times}}, NULL);
        for (uint64_t seed = 1; seed <= (uint64_t)extent->schedules * times && !broken; seed++)
                if (!differences || sets_meet(differences, &asked[seed]))
                        broken = schedule_run(world, seed, decide, false);
        if (broken)
                (void)snprintf(finding, FINDING_SIZE, "%s", broken);
        _exit(0);
}

/* differences: NULL to run all of them, `times` as many as for a mutant. NULL: no rule was broken. Valid until the next call. */
static const char *simulate(
        struct world *world, plan_function decide, const struct facts_set *differences, unsigned times)
{
        int status = 0;
        pid_t pid;

        finding[0] = '\0';
        pid = fork();
        if (pid < 0)
                abort();
        if (pid == 0)
                run_schedules(world, decide, differences, times);
        if (waitpid(pid, &status, 0) != pid)
                abort();
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                (void)snprintf(finding, FINDING_SIZE, "%s",
                        WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF ? "it does not end"
                                                                           : "the reconciler crashes");
        return finding[0] ? finding : NULL;
}

/* In which mutant and table differ. */
static unsigned count_schedules(const struct facts_set *differences)
{
        unsigned count = 0;

        for (unsigned seed = 1; seed <= extent->schedules; seed++)
                count += sets_meet(differences, &asked[seed]);
        return count;
}

static void try_mutant(struct world *world, unsigned row, const char *what, const char *detail, bool list,
        struct tally *tally)
{
        bool is_removed = strcmp(what, "removed") == 0;
        struct facts_set differences;
        struct plan_facts facts;
        const char *walked, *simulated;

        if (!find_differences(&differences)) {
                tally->equivalent++;
                return;
        }
        walked = walk_all_facts(plan_by_mutant, &facts);
        simulated = simulate(world, plan_by_mutant, &differences, 1);
        tally->walked += walked != NULL;
        tally->simulated += simulated != NULL;
        tally->both += walked && simulated;
        tally->unasked += count_schedules(&differences) == 0;
        tally->survived += !walked && !simulated;
        if (is_removed && count_schedules(&differences) == 0)
                printf("row %2u (%s): no schedule asks; %s\n", row + 1,
                        plan_action_to_string(table[row].action), walked ? walked : "no rule broken");
        if (list || (!walked && !simulated))
                printf("row %2u (%s) %s%s: %s; %s (%u schedules)\n", row + 1,
                        plan_action_to_string(table[row].action), what, detail,
                        walked ? walked : "no rule broken", simulated ? simulated : "every schedule good",
                        count_schedules(&differences));
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

/* Return how many mistakes of the helpers the simulation notices. */
static unsigned try_mistakes(struct world *world, bool list)
{
        static const char *const names[_HELPER_MISTAKE_MAX] = {
                [DROPS_WHAT_WAS_GIVEN_UP] = "drop what was given up",
                [RELEASES_WHEN_IT_KILLS] = "release what a helper holds when they kill it",
                [NEVER_RELEASES] = "never release what was given up",
                [KEEPS_A_HELPER_THAT_HANGS] = "keep a helper that hangs",
                [RETIRES_AND_DOES_NOT_KILL] = "give a helper up and do not kill it",
                [KEEPS_THE_SLOT_OF_THE_DEAD] = "keep the slot of one that is dead",
                [SWALLOWS_CALLS_OF_THE_DEAD] = "say nothing of the calls of one that died",
                [HAS_NO_DEADLINE] = "wait for ever",
        };
        unsigned found = 0;

        for (world->mistake = NO_MISTAKE + 1; world->mistake < _HELPER_MISTAKE_MAX; world->mistake++) {
                const char *broken = simulate(world, plan, NULL, extent->mistake_times);

                found += broken != NULL;
                if (list || !broken)
                        printf("helpers %s: %s\n", names[world->mistake],
                                broken ? broken : "every schedule good");
        }
        world->mistake = NO_MISTAKE;
        return found;
}

static void try_all_mutants(struct world *world, bool list, struct tally *tally)
{
        for (unsigned row = 0; row < ROWS - 1; row++) {
                remove_row(world, row, list, tally);
                widen_row(world, row, list, tally);
                change_action(world, row, list, tally);
        }
        printf("%u rows: %u mutants found by the rules, %u by %u schedules (%u by both; %u are about what "
               "none of them asks), "
               "%u survived, %u were equivalent\n",
                ROWS, tally->walked, tally->simulated, extent->schedules, tally->both, tally->unasked,
                tally->survived, tally->equivalent);
}

/* Return whether the simulation finds as much as it must. */
static bool reaches(const char *what, unsigned found, unsigned floor)
{
        if (found < floor)
                printf("the simulation found %u %s, and must find %u at least\n", found, what, floor);
        return found >= floor;
}

static bool has_option(char **argv, const char *option)
{
        while (*argv && strcmp(*argv, option) != 0)
                argv++;
        return *argv;
}

int main(int argc _unused_, char **argv)
{
        struct world *world = calloc(1, sizeof(*world));
        bool list = has_option(argv, "--list"), good;
        struct tally tally = {};
        const char *broken;

        if (has_option(argv, "--few"))
                extent = &few;
        if (!world)
                return 2;
        setlinebuf(stdout); /* the processes below must not inherit buffered text */
        finding = mmap(NULL, FINDING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (finding == MAP_FAILED)
                return 2;
        broken = learn_what_is_asked(world);
        if (broken) {
                printf("the table itself breaks a rule: %s\n", broken);
                return 1;
        }
        try_all_mutants(world, list, &tally);
        good = extent == &few || tally.survived == 0;
        good &= reaches("mutants", tally.simulated, extent->mutants);
        good &= reaches("mistakes of helpers", try_mistakes(world, list), extent->mistakes);
        free(world);
        return !good;
}
