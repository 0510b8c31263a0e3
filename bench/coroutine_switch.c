/* SPDX-License-Identifier: MIT */
/* Enters and leaves a coroutine ROUNDS times: two switches a round. Prints wall-clock ns per switch. */
#include "targets/worker/io/co.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct co_pool pool;

struct rounds {
        unsigned long left;
        struct co *co;
};

static void rounds_co(void *argument)
{
        struct rounds *rounds = argument;

        rounds->co = co_current(&pool);
        while (rounds->left > 0)
                co_suspend(rounds->co);
}

static double now_ns(void)
{
        struct timespec time;

        (void)clock_gettime(CLOCK_MONOTONIC, &time);
        return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
        unsigned long count = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
        struct rounds rounds = {.left = count};
        double begin;

        if (count == 0 || co_pool_init(&pool, CO_STACK_SIZE, 1) < 0
                || co_start(&pool, rounds_co, &rounds) < 0)
                return EXIT_FAILURE;
        begin = now_ns();
        for (; rounds.left > 0; rounds.left--)
                co_resume(rounds.co);
        printf("%.2f\n", (now_ns() - begin) / (double)count / 2);
        return EXIT_SUCCESS;
}
