/* SPDX-License-Identifier: MIT */
/* Which messages of a worker are accepted: those of every honest life, and none that has no place in one. */
#include "ublkd/plan/worker_messages.h"

#include "tests/unit/check.h"

#define MS UINT64_C(1000)
#define SECONDS UINT64_C(1000000)

enum { ROOM = 8 /* messages of one case, then _WORKER_MSG_MAX */ };

#define END _WORKER_MSG_MAX
#define HELLO WORKER_MSG_HELLO
#define BACKING WORKER_MSG_BACKING
#define PARAMS WORKER_MSG_PARAMS
#define READY WORKER_MSG_READY
#define FAILED WORKER_MSG_FAILED
#define GROWN WORKER_MSG_GROWN
#define NOTICE WORKER_MSG_NOTICE
#define NEWS WORKER_MSG_NEWS

/* The messages of one connection, all sent at once while the worker has that stage. Return the index of the first that
 * is refused, or -1. */
static int first_refused(const enum worker_msg_type *types, enum worker_stage stage)
{
        struct worker_messages messages = {};

        for (int i = 0; i < ROOM && types[i] != END; i++)
                if (worker_messages_fault(&messages, types[i], stage, SECONDS))
                        return i;
        return -1;
}

static void test_honest_lives(void)
{
        static const struct {
                enum worker_stage stage; /* that it has when the last message comes */
                enum worker_msg_type types[ROOM];
        } cases[] = {
                {WORKER_STAGE_READY,    {HELLO, BACKING, PARAMS, READY, END}                      },
                {WORKER_STAGE_READY,    {HELLO, PARAMS, READY, END}                               }, /* an older worker */
                {WORKER_STAGE_FETCHING, {HELLO, NOTICE, BACKING, PARAMS, NOTICE, READY, END}      },
                {WORKER_STAGE_OPENING,  {HELLO, BACKING, FAILED, END}                             },
                {WORKER_STAGE_OPENING,  {HELLO, FAILED, END}                                      },
                {WORKER_STAGE_OPEN,     {HELLO, PARAMS, GROWN, GROWN, FAILED, END}                },
                {WORKER_STAGE_FETCHING, {HELLO, PARAMS, NEWS, FAILED, END}                        },
                {WORKER_STAGE_SERVING,  {HELLO, BACKING, PARAMS, READY, NEWS, NEWS, GROWN, FAILED}},
                {WORKER_STAGE_LEAVING,  {HELLO, BACKING, PARAMS, READY, END}                      }, /* it says that it leaves */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                CHECK_INT(first_refused(cases[i].types, cases[i].stage), -1);
}

static void test_messages_out_of_order_are_refused(void)
{
        static const struct {
                enum worker_stage stage;
                enum worker_msg_type types[ROOM];
                int refused;
        } cases[] = {
                {WORKER_STAGE_OPENING,  {PARAMS, END},                         0},
                {WORKER_STAGE_OPENING,  {FAILED, END},                         0},
                {WORKER_STAGE_SERVING,  {NEWS, END},                           0},
                {WORKER_STAGE_OPENING,  {HELLO, HELLO, END},                   1},
                {WORKER_STAGE_OPENING,  {HELLO, BACKING, BACKING, END},        2},
                {WORKER_STAGE_OPEN,     {HELLO, PARAMS, BACKING, END},         2},
                {WORKER_STAGE_OPEN,     {HELLO, PARAMS, PARAMS, END},          2},
                {WORKER_STAGE_OPEN,     {HELLO, PARAMS, READY, END},           2}, /* without GO */
                {WORKER_STAGE_FETCHING, {HELLO, READY, END},                   1},
                {WORKER_STAGE_SERVING,  {HELLO, PARAMS, READY, READY, END},    3},
                {WORKER_STAGE_OPENING,  {HELLO, GROWN, END},                   1},
                {WORKER_STAGE_OPENING,  {HELLO, NEWS, END},                    1},
                {WORKER_STAGE_OPENING,  {HELLO, FAILED, FAILED, END},          2},
                {WORKER_STAGE_SERVING,  {HELLO, PARAMS, FAILED, NEWS, END},    3},
                {WORKER_STAGE_SERVING,  {HELLO, PARAMS, FAILED, NOTICE, END},  3},
                {WORKER_STAGE_SERVING,  {HELLO, WORKER_MSG_CONFIG, END},       1},
                {WORKER_STAGE_SERVING,  {HELLO, WORKER_MSG_GO, END},           1},
                {WORKER_STAGE_SERVING,  {HELLO, WORKER_MSG_LIVE, END},         1},
                {WORKER_STAGE_SERVING,  {HELLO, PARAMS, WORKER_MSG_GROW, END}, 2},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                CHECK_INT(first_refused(cases[i].types, cases[i].stage), cases[i].refused);
}

static void begin(struct worker_messages *messages)
{
        *messages = (struct worker_messages){};
        CHECK(!worker_messages_fault(messages, HELLO, WORKER_STAGE_OPENING, 0));
        CHECK(!worker_messages_fault(messages, PARAMS, WORKER_STAGE_OPENING, 0));
}

/* Return how many messages pass that are sent each `interval`, up to `count`. */
static unsigned passes(enum worker_msg_type type, uint64_t interval, unsigned count)
{
        struct worker_messages messages;
        unsigned i = 0;

        begin(&messages);
        while (i < count
                && !worker_messages_fault(&messages, type, WORKER_STAGE_SERVING, SECONDS + i * interval))
                i++;
        return i;
}

/* An episode without room lasts 20 ms at least, and has a beginning and an end. */
static void test_news_of_a_store_that_flaps_pass_for_ever(void)
{
        CHECK_INT(passes(NEWS, 10 * MS, 100000), 100000);
}

/* What a socket keeps while the supervisor is stopped comes at once, and then it goes on. */
static void test_news_that_have_waited_pass(void)
{
        struct worker_messages messages;
        uint64_t now = 100 * SECONDS;

        begin(&messages);
        for (unsigned i = 0; i < 700; i++)
                CHECK(!worker_messages_fault(&messages, NEWS, WORKER_STAGE_SERVING, now));
        for (unsigned i = 0; i < 10000; i++)
                CHECK(!worker_messages_fault(&messages, NEWS, WORKER_STAGE_SERVING, now += 10 * MS));
}

/* By default, the sockets of that machine are as large as another's for a data base. */
static void test_news_that_a_large_socket_has_kept_pass(void)
{
        struct worker_messages messages;

        begin(&messages);
        messages.kept = 20000;
        for (unsigned i = 0; i < 20000; i++)
                CHECK(!worker_messages_fault(&messages, NEWS, WORKER_STAGE_SERVING, 100 * SECONDS));
        CHECK(worker_messages_fault(&messages, NEWS, WORKER_STAGE_SERVING, 100 * SECONDS));
        for (unsigned i = 0; i < 16; i++) /* a NOTICE says something: none is sent again and again */
                CHECK(!worker_messages_fault(&messages, NOTICE, WORKER_STAGE_SERVING, 100 * SECONDS));
        CHECK(worker_messages_fault(&messages, NOTICE, WORKER_STAGE_SERVING, 100 * SECONDS));
}

/* Before, each new worker of a disk could send as many again. */
static void test_the_notices_of_a_disk_have_one_rate(void)
{
        uint64_t paid_until = 0, now = SECONDS;
        unsigned passed = 0;

        for (unsigned i = 0; i < 10000; i++)
                passed += worker_messages_takes_notice(&paid_until, now);
        CHECK_INT(passed, 16);
        for (unsigned i = 0; i < 36000; i++) /* one hour */
                passed += worker_messages_takes_notice(&paid_until, now += 100 * MS);
        CHECK_INT(passed, 16 + 360);
        for (unsigned i = 0; i < 100; i++) /* of honest workers that die each minute */
                CHECK(worker_messages_takes_notice(&paid_until, now += 60 * SECONDS)
                        && worker_messages_takes_notice(&paid_until, now));
}

static void test_a_flood_ends(void)
{
        CHECK(passes(NEWS, 0, 100000) < 1000);
        CHECK(passes(NEWS, SECONDS / 300, 100000)
                < 300 * 10); /* as fast as worker_proc.c reads: within 10 s */
        CHECK(passes(NOTICE, 0, 100000) < 100);
        CHECK(passes(NOTICE, SECONDS, 100000) < 100);
        CHECK_INT(passes(NOTICE, 60 * SECONDS, 1000), 1000);
}

/* The clock is at its beginning, or at its end: nothing wraps. */
static void test_times(void)
{
        struct worker_messages messages;

        begin(&messages);
        CHECK(!worker_messages_fault(&messages, NEWS, WORKER_STAGE_SERVING, 0));
        CHECK(!worker_messages_fault(&messages, NEWS, WORKER_STAGE_SERVING, UINT64_MAX / 2));
        CHECK(!worker_messages_fault(&messages, NEWS, WORKER_STAGE_SERVING, UINT64_MAX / 2));
}

int main(void)
{
        test_honest_lives();
        test_messages_out_of_order_are_refused();
        test_news_of_a_store_that_flaps_pass_for_ever();
        test_news_that_have_waited_pass();
        test_news_that_a_large_socket_has_kept_pass();
        test_the_notices_of_a_disk_have_one_rate();
        test_a_flood_ends();
        test_times();
        return check_report();
}
