/* SPDX-License-Identifier: MIT */
/* Whether the tests of the table would notice a broken table: every row is removed, widened in each column,
 * and given each other action, and the rules over all facts (walk.c) or the simulation must find fault with
 * it; and whether the simulation would notice helpers for control commands that get their part wrong.
 *   mutation FILE [--few] [--list]    --few: fewer schedules, within seconds; --list: also what found each mutant
 *   mutation --names                  print the names of all that the simulation finds, as FILE has them
 * A mutant that answers every combination as the table does is not a mutant. A surviving one must be listed.
 * Most are found by the rules as well. So a simulation that sees nothing any more would not show by a survivor: it must find
 * each mutant of FILE (must_find.txt), with --few those that are marked so. A change of the reconciler or of the simulation
 * makes other schedules of the same seeds. If it loses a mutant that few schedules find, and sees as much as before, make the
 * file again; a commit then shows which were lost.
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
        NAME_SIZE = 128,
        NAMES_MAX = 1024,
};

/* How much is tried. */
struct extent {
        unsigned schedules;     /* for a mutant; the table itself passes many more */
        unsigned mistake_times; /* as many for a mistake of helpers: several must hang in one schedule */
        unsigned patience;      /* seconds of a CPU, for all schedules of a mutant */
};

static const struct extent whole = {.schedules = SCHEDULES_MAX, .mistake_times = 10, .patience = 60};
static const struct extent few = {.schedules = 1000, .mistake_times = 1, .patience = 6};
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

/* The mutants and mistakes that the simulation must find, by their names, and those that it has found. */
static struct {
        char names[NAMES_MAX][NAME_SIZE];
        bool found[NAMES_MAX];
        unsigned count, more; /* more: found, and not among them */
        bool print;           /* print what is found instead */
} must_find;

/* Written by the process that runs the schedules. */
static struct finding {
        char rule[FINDING_SIZE]; /* that is broken */
        uint64_t seed;           /* of the schedule that runs, or ran last */
} *finding;

/* Each line of the file is "few NAME" or "all NAME"; "#" begins a comment. Return whether it could be read. */
static bool read_must_find(const char *path)
{
        FILE *file = fopen(path, "re");
        char line[NAME_SIZE + 4]; /* the mark and the name */

        while (file && fgets(line, sizeof(line), file)) {
                bool is_few = strncmp(line, "few ", 4) == 0;

                line[strcspn(line, "\n")] = '\0';
                if (must_find.count == NAMES_MAX || (!is_few && extent == &few) || *line == '#'
                        || *line == '\0')
                        continue;
                snprintf(must_find.names[must_find.count++], NAME_SIZE, "%s", line + 4);
        }
        return file && fclose(file) == 0 && must_find.count > 0;
}

static void note_found(const char *name)
{
        if (must_find.print)
                printf("%s %s\n", finding->seed <= few.schedules ? "few" : "all", name);
        for (unsigned i = 0; i < must_find.count; i++)
                if (strcmp(must_find.names[i], name) == 0) {
                        must_find.found[i] = true;
                        return;
                }
        must_find.more++;
}

/* Return whether the simulation has found all that it must. */
static bool found_all(void)
{
        unsigned lost = 0;

        for (unsigned i = 0; i < must_find.count; i++)
                if (!must_find.found[i]) {
                        printf("the simulation does not find, and must: %s\n", must_find.names[i]);
                        lost++;
                }
        printf("the simulation found %u of %u that it must find, and %u more\n", must_find.count - lost,
                must_find.count, must_find.more);
        return lost == 0;
}

static void run_schedules(
        struct world *world, plan_function decide, const struct facts_set *differences, unsigned times)
{
        const char *broken = NULL;

        (void)setitimer(ITIMER_PROF,
                &(const struct itimerval){.it_value = {.tv_sec = extent->patience * times}}, NULL);
        for (uint64_t seed = 1; seed <= (uint64_t)extent->schedules * times && !broken; seed++)
                if (!differences || sets_meet(differences, &asked[seed])) {
                        finding->seed = seed;
                        broken = schedule_run(world, seed, decide, false);
                }
        if (broken)
                (void)snprintf(finding->rule, sizeof(finding->rule), "%s", broken);
        _exit(0);
}

/* differences: NULL to run all of them, `times` as many as for a mutant. NULL: no rule was broken. Valid until the next call. */
static const char *simulate(
        struct world *world, plan_function decide, const struct facts_set *differences, unsigned times)
{
        int status = 0;
        pid_t pid;

        finding->rule[0] = '\0';
        pid = fork();
        if (pid < 0)
                abort();
        if (pid == 0)
                run_schedules(world, decide, differences, times);
        if (waitpid(pid, &status, 0) != pid)
                abort();
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                (void)snprintf(finding->rule, sizeof(finding->rule), "%s",
                        WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF ? "it does not end"
                                                                           : "the reconciler crashes");
        return finding->rule[0] ? finding->rule : NULL;
}

/* In which mutant and table differ. */
static unsigned count_schedules(const struct facts_set *differences)
{
        unsigned count = 0;

        for (unsigned seed = 1; seed <= extent->schedules; seed++)
                count += sets_meet(differences, &asked[seed]);
        return count;
}

/* Name a row by its action and its number among the rows with that action: a row that is added or removed leaves most names
 * as they are. */
static void print_name(unsigned row, const char *what, const char *detail, char ret[static NAME_SIZE])
{
        const char *action = plan_action_to_string(table[row].action);
        unsigned number = 1;

        for (unsigned i = 0; i < row; i++)
                number += table[i].action == table[row].action;
        snprintf(ret, NAME_SIZE, "%s %u %s%s", action, number, what, detail);
}

static void try_mutant(struct world *world, unsigned row, const char *what, const char *detail, bool list,
        struct tally *tally)
{
        bool is_removed = strcmp(what, "removed") == 0;
        struct facts_set differences;
        struct plan_facts facts;
        const char *walked, *simulated;
        char name[NAME_SIZE];

        if (!find_differences(&differences)) {
                tally->equivalent++;
                return;
        }
        walked = walk_all_facts(plan_by_mutant, &facts);
        simulated = simulate(world, plan_by_mutant, &differences, 1);
        print_name(row, what, detail, name);
        if (simulated)
                note_found(name);
        tally->walked += walked != NULL;
        tally->simulated += simulated != NULL;
        tally->both += walked && simulated;
        tally->unasked += count_schedules(&differences) == 0;
        tally->survived += !walked && !simulated;
        if (must_find.print)
                return;
        if (is_removed && count_schedules(&differences) == 0)
                printf("row %2u (%s): no schedule asks; %s\n", row + 1,
                        plan_action_to_string(table[row].action), walked ? walked : "no rule broken");
        if (list || (!walked && !simulated))
                printf("row %2u, %s: %s; %s (%u schedules)\n", row + 1, name,
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

static void try_mistakes(struct world *world, bool list)
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
                [COMPARES_NO_COOKIE] = "recover whatever disk has the number",
        };

        for (world->mistake = NO_MISTAKE + 1; world->mistake < _HELPER_MISTAKE_MAX; world->mistake++) {
                const char *broken = simulate(world, plan, NULL, extent->mistake_times);
                char name[NAME_SIZE];

                snprintf(name, sizeof(name), "helpers %s", names[world->mistake]);
                if (broken)
                        note_found(name);
                if (!must_find.print && (list || !broken))
                        printf("%s: %s\n", name, broken ? broken : "every schedule good");
        }
        world->mistake = NO_MISTAKE;
}

static void try_all_mutants(struct world *world, bool list, struct tally *tally)
{
        for (unsigned row = 0; row < ROWS - 1; row++) {
                remove_row(world, row, list, tally);
                widen_row(world, row, list, tally);
                change_action(world, row, list, tally);
        }
        if (must_find.print)
                return;
        printf("%u rows: %u mutants found by the rules, %u by %u schedules (%u by both; %u are about what "
               "none of them asks), "
               "%u survived, %u were equivalent\n",
                ROWS, tally->walked, tally->simulated, extent->schedules, tally->both, tally->unasked,
                tally->survived, tally->equivalent);
}

static bool has_option(char **argv, const char *option)
{
        while (*argv && strcmp(*argv, option) != 0)
                argv++;
        return *argv;
}

int main(int argc, char **argv)
{
        struct world *world = calloc(1, sizeof(*world));
        bool list = has_option(argv, "--list"), good;
        struct tally tally = {};
        const char *broken;

        if (has_option(argv, "--few"))
                extent = &few;
        must_find.print = has_option(argv, "--names");
        if (!world || argc < 2)
                return 2;
        if (!must_find.print && !read_must_find(argv[1])) {
                printf("%s has no names, or cannot be read\n", argv[1]);
                return 2;
        }
        setlinebuf(stdout); /* the processes below must not inherit buffered text */
        finding = mmap(NULL, sizeof(*finding), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (finding == MAP_FAILED)
                return 2;
        broken = learn_what_is_asked(world);
        if (broken) {
                printf("the table itself breaks a rule: %s\n", broken);
                return 1;
        }
        try_all_mutants(world, list, &tally);
        try_mistakes(world, list);
        good = must_find.print || extent == &few || tally.survived == 0;
        good &= must_find.print || found_all();
        free(world);
        return !good;
}
