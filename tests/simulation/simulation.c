/* SPDX-License-Identifier: MIT */
/* Random schedules through the real reconciler and its store:
 *   simulation [--schedules N] [--seed S]     N schedules, seeds S, S + 1, …; S is drawn when it is not given
 *   simulation --trace S                      one schedule, printed step by step
 * UBLKD_SIMULATION_SEED is the same as --seed. Exit status 1: a schedule broke a rule; its seed is printed.
 */
#include "sim.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The linker gives plan() this name, and the reconciler __wrap_plan(). */
enum plan_action __real_plan(const struct plan_facts *facts);

enum { TWICE_EACH = 100 };

struct request {
        uint64_t seed, schedules;
        bool trace;
};

static struct world *crashing;

/* The seed must not be lost with the process. */
static void on_crash(int signal)
{
        char text[128];
        int n = snprintf(text, sizeof(text), "crashes: see --trace %" PRIu64 "\n", crashing->seed);

        if (n > 0)
                (void)!write(STDOUT_FILENO, text, (size_t)n);
        (void)raise(signal); /* and now as it is without a handler */
}

static void catch_crashes(struct world *world)
{
        static char stack[16384]; /* the other one may be what has run out */
        const stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
        const struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND | SA_ONSTACK};

        crashing = world;
        (void)sigaltstack(&other, NULL);
        (void)sigaction(SIGSEGV, &action, NULL);
        (void)sigaction(SIGABRT, &action, NULL);
}

static uint64_t draw_seed(void)
{
        const char *text = getenv("UBLKD_SIMULATION_SEED");
        uint64_t seed = 0;

        if (text && *text)
                return strtoull(text, NULL, 0);
        if (getentropy(&seed, 6) < 0)
                abort();
        return seed;
}

static int parse(int argc, char **argv, struct request *ret)
{
        static const struct option options[] = {
                {"schedules", required_argument, NULL, 'n'},
                {"seed", required_argument, NULL, 's'},
                {"trace", required_argument, NULL, 't'},
                {},
        };
        int option;

        *ret = (struct request){.seed = draw_seed(), .schedules = 100000};
        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (option == '?')
                        return -1;
                if (option == 'n')
                        ret->schedules = strtoull(optarg, NULL, 0);
                else
                        ret->seed = strtoull(optarg, NULL, 0);
                if (option == 't') {
                        ret->trace = true;
                        ret->schedules = 1;
                }
        }
        return 0;
}

/* A seed that gives another schedule the second time is of no use. */
static const char *run_twice(struct world *world, uint64_t seed)
{
        const char *broken = schedule_run(world, seed, __real_plan, false);
        const uint64_t random = world->random, now = world->now, steps = world->steps;

        if (broken)
                return broken;
        broken = schedule_run(world, seed, __real_plan, false);
        if (!broken && (world->random != random || world->now != now || world->steps != steps))
                return "a schedule is not the same when it is run again";
        return broken;
}

int main(int argc, char **argv)
{
        struct world *world = calloc(1, sizeof(*world));
        struct request request;
        uint64_t failed = 0, steps = 0, workers = 0;
        clock_t began = clock();

        if (!world || parse(argc, argv, &request) < 0)
                return 2;
        setlinebuf(stdout);
        catch_crashes(world);
        printf("seed %" PRIu64 ", %" PRIu64 " schedules\n", request.seed, request.schedules);
        for (uint64_t i = 0; i < request.schedules && failed < 20; i++) {
                const char *broken =
                        i % TWICE_EACH == 0 && !request.trace
                                ? run_twice(world, request.seed + i)
                                : schedule_run(world, request.seed + i, __real_plan, request.trace);

                steps += world->steps;
                workers += (uint64_t)world->process_count;
                if (!broken)
                        continue;
                failed++;
                printf("%s: see %s --trace %" PRIu64 "\n", broken, argv[0], request.seed + i);
        }
        printf("%" PRIu64 " failed; %" PRIu64 " steps, %" PRIu64 " workers, %.1f s\n", failed, steps, workers,
                (double)(clock() - began) / CLOCKS_PER_SEC);
        free(world);
        return failed > 0;
}
