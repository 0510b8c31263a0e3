/* SPDX-License-Identifier: MIT */
/* Random schedules through the real plan.c, attempt.c and backoff.c:
 *   simulation [--schedules N] [--seed S]     N schedules, seeds S, S + 1, …; S is drawn when it is not given
 *   simulation --trace S                      one schedule, told step by step
 * UBLKD_SIMULATION_SEED is the same as --seed. Exit status 1: a schedule broke a rule; its seed is printed.
 */
#include "sim.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct request {
        uint64_t seed, schedules;
        bool trace;
};

static uint64_t draw_seed(void)
{
        const char *text = getenv("UBLKD_SIMULATION_SEED");
        struct timespec now;

        if (text && *text)
                return strtoull(text, NULL, 0);
        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
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

int main(int argc, char **argv)
{
        struct world *world = calloc(1, sizeof(*world));
        struct request request;
        uint64_t failed = 0, steps = 0, workers = 0;
        clock_t began = clock();

        if (!world || parse(argc, argv, &request) < 0)
                return 2;
        setlinebuf(stdout);
        printf("seed %" PRIu64 ", %" PRIu64 " schedules\n", request.seed, request.schedules);
        for (uint64_t i = 0; i < request.schedules && failed < 20; i++) {
                const char *broken = schedule_run(world, request.seed + i, plan, request.trace);

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
