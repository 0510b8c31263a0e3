/* SPDX-License-Identifier: MIT */
/* Who holds a lock, and who comes next: the order is that of arrival, and none is left behind. */
#include "targets/target_locks.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"

#include <string.h>

enum { DEPTH = 8, MANY = 600 };

static struct io_loop loop;
static struct target_device device;
static char events[8192]; /* what happened, in order */

static void note(char what, unsigned who)
{
        size_t used = strlen(events);

        snprintf(events + used, sizeof(events) - used, "%c%u ", what, who);
}

/* Let others run. */
static void yield_co(void)
{
        struct co *co = co_current(&loop.coroutines);

        co_list_append(&loop.ready, co);
        co_suspend(co);
}

static bool begin(void)
{
        events[0] = '\0';
        device = (struct target_device){.queue_depth = DEPTH};
        return CHECK_INT(io_loop_init(&loop, &device, 0, DEPTH, MANY, -1, IO_LOOP_HELD_BY_PROCESS), 0);
}

static void end(void)
{
        io_loop_run_ready(&loop);
        CHECK_INT(loop.coroutines.busy, 0);
        io_loop_destroy(&loop);
}

static void start(void (*entry)(void *argument), void *argument)
{
        CHECK_INT(co_start(&loop.coroutines, entry, argument), 0);
}

/* ---- mutex ---- */

static struct co_mutex mutex;
static unsigned inside;

static void mutex_co(void *argument)
{
        unsigned who = (unsigned)(uintptr_t)argument;

        for (int i = 0; i < 2; i++) {
                await_mutex(&loop.queue, &mutex);
                CHECK_INT(inside++, 0);
                note('+', who);
                yield_co();
                inside--;
                note('-', who);
                co_mutex_unlock(&mutex);
        }
}

static void test_mutex(void)
{
        mutex = (struct co_mutex){};
        if (!begin())
                return;
        for (uintptr_t i = 1; i <= 3; i++)
                start(mutex_co, (void *)i);
        end();
        /* The first asks again as it still runs, and comes after those that waited. */
        CHECK_STR(events, "+1 -1 +2 -2 +3 -3 +1 -1 +2 -2 +3 -3 ");
        CHECK(!mutex.held);
}

static void test_mutex_of_many(void)
{
        mutex = (struct co_mutex){};
        if (!begin())
                return;
        for (uintptr_t i = 1; i <= MANY; i++)
                start(mutex_co, (void *)i);
        end();
        CHECK(!mutex.held && !mutex.waiters.first && !mutex.waiters.last);
}

/* ---- read-write lock ---- */

static struct co_rwlock rwlock;

static void reader_co(void *argument)
{
        unsigned who = (unsigned)(uintptr_t)argument;

        await_rwlock_read(&loop.queue, &rwlock);
        CHECK(!rwlock.writer);
        note('r', who);
        yield_co();
        note('.', who);
        co_rwlock_unlock_read(&rwlock);
}

static void writer_co(void *argument)
{
        unsigned who = (unsigned)(uintptr_t)argument;

        await_rwlock_write(&loop.queue, &rwlock);
        CHECK(rwlock.writer && rwlock.readers == 0);
        note('w', who);
        yield_co();
        note('.', who);
        co_rwlock_unlock_write(&rwlock);
}

/* Reads as it wrote: those that read come in with it, before the next writer. */
static void downgrading_co(void *argument)
{
        unsigned who = (unsigned)(uintptr_t)argument;

        await_rwlock_write(&loop.queue, &rwlock);
        note('w', who);
        yield_co();
        co_rwlock_downgrade(&rwlock);
        note('d', who);
        yield_co();
        note('.', who);
        co_rwlock_unlock_read(&rwlock);
}

static const char *rwlock_order(const char *kinds)
{
        rwlock = (struct co_rwlock){};
        if (!begin())
                return "";
        for (uintptr_t i = 0; kinds[i]; i++)
                start(kinds[i] == 'r' ? reader_co : kinds[i] == 'w' ? writer_co : downgrading_co, (void *)i);
        end();
        CHECK(!rwlock.writer && rwlock.readers == 0 && !rwlock.waiters.first);
        return events;
}

static void test_rwlock(void)
{
        CHECK_STR(rwlock_order("rr"), "r0 r1 .0 .1 ");
        /* A reader does not pass the writer that waits, and a writer does not pass that reader. */
        CHECK_STR(rwlock_order("rwrw"), "r0 .0 w1 .1 r2 .2 w3 .3 ");
        CHECK_STR(rwlock_order("rrwrrw"), "r0 r1 .0 .1 w2 .2 r3 r4 .3 .4 w5 .5 ");
        CHECK_STR(rwlock_order("wwr"), "w0 .0 w1 .1 r2 .2 ");
        CHECK_STR(rwlock_order("drw"), "w0 d0 r1 .0 .1 w2 .2 ");
}

/* A writer gets in although there is never a moment without a reader of those that come again and again. */
static unsigned reads, written_after;

static void restless_reader_co(void *argument)
{
        (void)argument;
        for (int i = 0; i < 100; i++) {
                await_rwlock_read(&loop.queue, &rwlock);
                reads++;
                yield_co();
                co_rwlock_unlock_read(&rwlock);
        }
}

static void one_writer_co(void *argument)
{
        (void)argument;
        await_rwlock_write(&loop.queue, &rwlock);
        written_after = reads;
        co_rwlock_unlock_write(&rwlock);
}

static void test_a_writer_does_not_starve(void)
{
        rwlock = (struct co_rwlock){};
        reads = written_after = 0;
        if (!begin())
                return;
        start(restless_reader_co, NULL);
        io_loop_run_ready(&loop); /* to its end: it is alone */
        CHECK_INT(reads, 100);
        for (int i = 0; i < 4; i++)
                start(restless_reader_co, NULL);
        start(one_writer_co, NULL);
        end();
        CHECK_INT(written_after, 104);
        CHECK_INT(reads, 500);
}

/* ---- ranges ---- */

static struct co_range_lock range_lock;

struct ranged {
        uint64_t offset, length;
        enum co_range_use use;
};

static const struct ranged *ranges;

static void range_co(void *argument)
{
        unsigned who = (unsigned)(uintptr_t)argument;
        const struct ranged *ranged = &ranges[who];
        struct co_range range;

        await_range(&loop.queue, &range_lock, &range, ranged->offset, ranged->length, ranged->use);
        note('+', who);
        yield_co();
        note('-', who);
        co_range_unlock(&range_lock, &range);
}

static const char *range_order(const struct ranged *list, unsigned count)
{
        range_lock = (struct co_range_lock){};
        ranges = list;
        if (!begin())
                return "";
        for (uintptr_t i = 0; i < count; i++)
                start(range_co, (void *)i);
        end();
        CHECK(!range_lock.first && !range_lock.last);
        return events;
}

#define RANGE_ORDER(...)                                                                                     \
        range_order((const struct ranged[]){__VA_ARGS__},                                                    \
                (unsigned)(sizeof((const struct ranged[]){__VA_ARGS__}) / sizeof(struct ranged)))
#define WRITES(...) {__VA_ARGS__, CO_RANGE_EXCLUSIVE}
#define READS(...) {__VA_ARGS__, CO_RANGE_SHARED}

static void test_ranges(void)
{
        /* neighbours do not meet */
        CHECK_STR(RANGE_ORDER(WRITES(0, 10), WRITES(10, 10)), "+0 +1 -0 -1 ");
        CHECK_STR(RANGE_ORDER(WRITES(0, 10), WRITES(9, 10), WRITES(18, 2)), "+0 -0 +1 -1 +2 -2 ");
        /* one that overlaps what waits does not pass it, although what it wants is free */
        CHECK_STR(RANGE_ORDER(WRITES(0, 10), WRITES(5, 10), WRITES(12, 10), WRITES(30, 1)),
                "+0 +3 -0 -3 +1 -1 +2 -2 ");
        /* readers share, and wait for the writers before them */
        CHECK_STR(RANGE_ORDER(READS(0, 10), READS(5, 10), WRITES(7, 1), READS(0, 10)),
                "+0 +1 -0 -1 +2 -2 +3 -3 ");
        /* a writer over all waits for all */
        CHECK_STR(RANGE_ORDER(WRITES(0, 1), WRITES(5, 1), WRITES(0, UINT64_MAX), WRITES(7, 1)),
                "+0 +1 -0 -1 +2 -2 +3 -3 ");
        /* the ends of the numbers */
        CHECK_STR(RANGE_ORDER(WRITES(UINT64_MAX - 1, 1), WRITES(UINT64_MAX - 1, UINT64_MAX)), "+0 -0 +1 -1 ");
        CHECK_STR(RANGE_ORDER(WRITES(5, 0), WRITES(0, 10), WRITES(5, 0)), "+0 +1 +2 -0 -1 -2 ");
}

/* Against a model that only knows who overlaps: at no time do two that conflict hold, and those that conflict
 * hold in the order in which they came. */
enum { UNITS = 12 };
static struct ranged random_ranges[MANY];
static int writers_of[UNITS], readers_of[UNITS];
static unsigned
        newest_of[UNITS]; /* the latest to come of those that have held the unit for themselves, plus 1 */

static void random_co(void *argument)
{
        unsigned who = (unsigned)(uintptr_t)argument;
        const struct ranged *ranged = &random_ranges[who];
        bool writes = ranged->use == CO_RANGE_EXCLUSIVE;
        struct co_range range;

        await_range(&loop.queue, &range_lock, &range, ranged->offset, ranged->length, ranged->use);
        for (uint64_t i = ranged->offset; i < ranged->offset + ranged->length; i++) {
                CHECK_INT(writers_of[i], 0);
                CHECK(!writes || readers_of[i] == 0);
                CHECK(newest_of[i] <= who);
                if (writes) {
                        writers_of[i]++;
                        newest_of[i] = who + 1;
                } else {
                        readers_of[i]++;
                }
        }
        for (unsigned i = 0; i < who % 5; i++)
                yield_co();
        for (uint64_t i = ranged->offset; i < ranged->offset + ranged->length; i++)
                *(writes ? &writers_of[i] : &readers_of[i]) -= 1;
        co_range_unlock(&range_lock, &range);
}

static void test_random_ranges(unsigned seed)
{
        memset(newest_of, 0, sizeof(newest_of));
        if (!begin())
                return;
        for (uintptr_t i = 0; i < MANY; i++) {
                seed = seed * 1103515245 + 12345;
                random_ranges[i].offset = (seed >> 16) % UNITS;
                random_ranges[i].length = (seed >> 20) % (UNITS - random_ranges[i].offset + 1);
                random_ranges[i].use = (seed >> 26) % 3 ? CO_RANGE_EXCLUSIVE : CO_RANGE_SHARED;
                start(random_co, (void *)i);
                if (i % 7 == 0)
                        io_loop_run_ready(&loop);
        }
        end();
        CHECK(!range_lock.first && !range_lock.last);
}

/* ---- condition ---- */

static struct co_condition condition;
static unsigned tokens;

static void taker_co(void *argument)
{
        unsigned who = (unsigned)(uintptr_t)argument;

        await_mutex(&loop.queue, &mutex);
        while (tokens == 0)
                CHECK_INT(await_condition(&loop.queue, &condition, &mutex), 0);
        CHECK(mutex.held);
        tokens--;
        note('t', who);
        yield_co();
        co_mutex_unlock(&mutex);
}

static void test_condition(void)
{
        mutex = (struct co_mutex){};
        condition = (struct co_condition){};
        tokens = 0;
        if (!begin())
                return;
        for (uintptr_t i = 0; i < 4; i++)
                start(taker_co, (void *)i);
        CHECK(!mutex.held);
        tokens = 1;
        co_condition_signal(&condition);
        io_loop_run_ready(&loop);
        CHECK_STR(events, "t0 ");
        co_condition_broadcast(&condition); /* there is nothing: each looks, and waits again */
        io_loop_run_ready(&loop);
        CHECK_STR(events, "t0 ");
        tokens = 3;
        co_condition_broadcast(&condition);
        end();
        CHECK_STR(events, "t0 t1 t2 t3 ");
        co_condition_signal(&condition); /* nothing waits */
        CHECK(!mutex.held && !condition.waiters.first);
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        test_mutex();
        test_mutex_of_many();
        test_rwlock();
        test_a_writer_does_not_starve();
        test_ranges();
        for (unsigned seed = 1; seed <= 20; seed++)
                test_random_ranges(seed);
        test_condition();
        return check_report();
}
