/* SPDX-License-Identifier: MIT */
/* await_all(): everything that was begun has ended when it returns, and it always ends. */
#include "tests/unit/targets/worker/wait/counted_memory.h"

#include <string.h>

enum { FAN = 4 };

static char events[4096];

static void note(char what, unsigned number)
{
        size_t used = strlen(events);

        snprintf(events + used, sizeof(events) - used, "%c%u ", what, number);
}

static unsigned running, most; /* children at one time */

struct part {
        unsigned number;
        uint64_t nanoseconds; /* 0: it does not wait for time */
        unsigned turn; /* it ends as that one of the parts that wait, counted from 1; 0: in any order */
        int result;
};

static unsigned turn_now;
static struct co_condition next_turn;

/* First for a completion, so that all have begun. */
static void await_turn(const struct part *part)
{
        CHECK_INT(await_timeout(&loop.queue, UINT64_C(100000)), 0);
        while (turn_now != part->turn)
                CHECK_INT(await_condition(&loop.queue, &next_turn, NULL), 0);
}

static void end_turn(void)
{
        turn_now++;
        co_condition_broadcast(&next_turn);
}

static int part_run(void *argument)
{
        struct part *part = argument;

        note('+', part->number);
        running++;
        most = running > most ? running : most;
        if (part->nanoseconds > 0)
                CHECK_INT(await_timeout(&loop.queue, part->nanoseconds), 0);
        if (part->turn > 0)
                await_turn(part);
        running--;
        note('-', part->number);
        if (part->turn > 0)
                end_turn();
        return part->result;
}

static struct part parts[16];
static unsigned part_count;
static int outcome;

static void request_co(void *argument)
{
        struct target_child children[16];

        (void)argument;
        for (unsigned i = 0; i < part_count; i++)
                children[i] = (struct target_child){.run = part_run, .argument = &parts[i]};
        outcome = await_all(&loop.queue, children, part_count);
        CHECK_INT(running, 0);
        for (unsigned i = 0; i < part_count; i++)
                CHECK_INT(children[i].result, parts[i].result);
        note('.', 0);
}

/* Fan out to `count` of `parts` in a queue with `children` places for each request. */
static void fan_out(unsigned children, unsigned count)
{
        desc = (struct target_desc){.name = "test", .waits.children = children};
        running = most = 0;
        turn_now = 1;
        next_turn = (struct co_condition){};
        outcome = -ENOTRECOVERABLE;
        part_count = count;
        events[0] = '\0';
        for (unsigned i = 0; i < count; i++)
                parts[i].number = i;
        if (!world_open(NULL, 0) || !world_run())
                return;
        start(request_co, NULL);
        world_close();
}

#define MS UINT64_C(1000000)

static void test_all_at_the_same_time(void)
{
        memset(parts, 0, sizeof(parts));
        for (unsigned i = 0; i < FAN; i++)
                parts[i] = (struct part){.turn = FAN - i, .result = (int)i};
        fan_out(FAN - 1, FAN);
        CHECK_INT(outcome, 0);
        CHECK_INT(most, FAN);
        CHECK_STR(events, "+0 +1 +2 +3 -3 -2 -1 -0 .0 ");
        fan_out(FAN - 1, 0);
        CHECK_INT(outcome, 0);
        CHECK_STR(events, ".0 ");
        parts[0].turn = 1;
        fan_out(FAN - 1, 1);
        CHECK_STR(events, "+0 -0 .0 ");
}

/* The request has DEPTH places, because no other fans out; a target that declares none runs them in turn. */
static void test_more_than_there_are_places(void)
{
        memset(parts, 0, sizeof(parts));
        for (unsigned i = 0; i < 16; i++)
                parts[i] = (struct part){.nanoseconds = MS, .result = (int)i};
        fan_out(1, 16);
        CHECK_INT(outcome, 0);
        CHECK_INT(most, DEPTH + 1);
        fan_out(0, 3);
        CHECK_INT(outcome, 0);
        CHECK_INT(most, 1);
        CHECK_STR(events, "+0 -0 +1 -1 +2 -2 .0 ");
}

static void test_the_first_error(void)
{
        memset(parts, 0, sizeof(parts));
        parts[0] = (struct part){.turn = 3, .result = -EIO};
        parts[1] = (struct part){.turn = 4, .result = 4096};
        parts[2] = (struct part){.turn = 1, .result = -ENOSPC};
        parts[3] = (struct part){.turn = 2, .result = -ENOMEM};
        fan_out(FAN, FAN);
        CHECK_INT(outcome, -ENOSPC);
        CHECK_STR(events, "+0 +1 +2 +3 -2 -3 -0 -1 .0 ");
        parts[3].turn = 1;
        parts[0].turn = 2;
        parts[1].turn = 3;
        parts[2].turn = 0; /* fails at once, before others have waited */
        fan_out(FAN, FAN);
        CHECK_INT(outcome, -ENOSPC);
        CHECK_STR(events, "+0 +1 +2 -2 +3 -3 -0 -1 .0 ");
}

/* ---- all requests of a queue, and children that fan out themselves ---- */

static unsigned leaves;

struct level {
        unsigned below;
};

static int level_run(void *argument)
{
        const struct level *level = argument;
        struct level next = {.below = level->below - 1};
        struct target_child children[3];

        if (level->below == 0) {
                leaves++;
                return await_timeout(&loop.queue, MS / 10);
        }
        for (unsigned i = 0; i < 3; i++)
                children[i] = (struct target_child){.run = level_run, .argument = &next};
        return await_all(&loop.queue, children, 3);
}

static void tree_co(void *argument)
{
        struct level level = {.below = 4};

        *(int *)argument = level_run(&level);
}

/* A request wants 80 places, and has as many as `children` says. */
static void test_nested_at_full_depth(unsigned children)
{
        int results[DEPTH];

        desc = (struct target_desc){.name = "test", .waits.children = children};
        leaves = 0;
        if (!world_open(NULL, 0) || !world_run())
                return;
        for (unsigned i = 0; i < DEPTH; i++) {
                results[i] = -ENOTRECOVERABLE;
                start(tree_co, &results[i]);
        }
        CHECK(loop.coroutines.busy <= DEPTH * (1 + children));
        world_close();
        for (unsigned i = 0; i < DEPTH; i++)
                CHECK_INT(results[i], 0);
        CHECK_INT(leaves, DEPTH * 81);
}

/* With all places taken there is still a stack for each request. */
static void wide_co(void *argument)
{
        struct target_child children[16];
        struct level leaf = {};

        for (unsigned i = 0; i < 16; i++)
                children[i] = (struct target_child){.run = level_run, .argument = &leaf};
        *(int *)argument = await_all(&loop.queue, children, 16);
}

static void test_a_greedy_request_leaves_room(void)
{
        int results[DEPTH];

        desc = (struct target_desc){.name = "test", .waits.children = 1};
        if (!world_open(NULL, 0) || !world_run())
                return;
        for (unsigned i = 0; i < DEPTH; i++) {
                results[i] = -ENOTRECOVERABLE;
                start(wide_co, &results[i]); /* the first takes all places */
        }
        CHECK_INT(loop.coroutines.busy, 2 * DEPTH);
        world_close();
        for (unsigned i = 0; i < DEPTH; i++)
                CHECK_INT(results[i], 0);
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        for (holder = IO_LOOP_HELD_BY_RING; holder <= IO_LOOP_HELD_BY_PROCESS; holder++) {
                test_all_at_the_same_time();
                test_more_than_there_are_places();
                test_the_first_error();
                for (unsigned children = 0; children <= TARGET_CHILDREN_MAX; children += 7)
                        test_nested_at_full_depth(children);
                test_a_greedy_request_leaves_room();
        }
        check_no_allocations();
        return check_report();
}
