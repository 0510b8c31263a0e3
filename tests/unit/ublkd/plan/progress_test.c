/* SPDX-License-Identifier: MIT */
/* progress: what a row of looks at a disk shows. Each look comes when progress_next() says; the world between two looks
 * is a line of a story. */
#include "ublkd/plan/progress.h"

#include "tests/unit/check.h"

enum { QUEUES = 2 };

#define SECONDS UINT64_C(1000000)
#define PATIENCE (30 * SECONDS)

struct story {
        struct progress_memory memory;
        struct progress_seen seen[QUEUES];
        struct progress_queue queues[QUEUES];
        struct progress_look look;
        uint64_t cpu_share; /* of the threads that run, percent */
};

static void begin(struct story *story)
{
        *story = (struct story){
                .memory = {.count = QUEUES, .queues = story->seen},
                .look = {.at = 1000 * SECONDS, .count = QUEUES, .queues = story->queues},
        };
        for (unsigned i = 0; i < QUEUES; i++)
                story->queues[i].thread = THREAD_SLEEPS;
}

static enum progress look(struct story *story)
{
        return progress_judge(&story->memory, &story->look, PATIENCE);
}

/* Look as long as `usec`, and return what the last look shows, which a second one confirms. Before `usec` all must be
 * well. */
static enum progress look_for(struct story *story, uint64_t usec)
{
        uint64_t end = story->look.at + usec;
        enum progress progress = look(story);

        while (story->look.at < end) {
                uint64_t next = progress_next(progress, story->look.at, PATIENCE);

                if (next > end)
                        next = end;
                for (unsigned i = 0; i < QUEUES; i++)
                        if (story->queues[i].thread == THREAD_RUNS)
                                story->queues[i].cpu_usec += (next - story->look.at) * story->cpu_share / 100;
                story->look.at = next;
                progress = look(story);
                if (story->look.at < end && progress != PROGRESS_UNSURE)
                        CHECK_INT(progress, PROGRESS_MADE);
        }
        if (progress == PROGRESS_UNSURE && story->queues[0].thread != THREAD_RUNS
                && story->queues[1].thread != THREAD_RUNS) {
                story->look.at = progress_next(progress, story->look.at, PATIENCE);
                progress = look(story);
        }
        return progress;
}

/* One request came to the kernel, and one of them, or none, to a queue. */
static void issue(struct story *story, int queue)
{
        story->look.disk_in_flight++;
        if (queue >= 0) {
                story->queues[queue].at_store++;
                story->queues[queue].rounds++;
        }
}

static void end(struct story *story, unsigned queue)
{
        story->look.disk_in_flight--;
        story->look.disk_ended++;
        story->queues[queue].at_store--;
        story->queues[queue].ended++;
        story->queues[queue].rounds++;
}

static enum progress look_a_second_later(struct story *story)
{
        story->look.at += SECONDS;
        return look(story);
}

/* The requests of the disk are read before those of the worker. */
static void test_a_request_that_ends_during_a_look(void)
{
        struct story story;

        begin(&story);
        issue(&story, 0);
        CHECK_INT(look_for(&story, PATIENCE), PROGRESS_SLOW);
        end(&story, 0);
        story.look.disk_in_flight++;
        story.look.disk_ended--;
        CHECK_INT(look_a_second_later(&story), PROGRESS_UNSURE);
        story.look.disk_in_flight--;
        story.look.disk_ended++;
        CHECK_INT(look_a_second_later(&story), PROGRESS_MADE);
}

static void test_a_worker_that_is_stopped_for_a_moment_while_it_waits(void)
{
        struct story story;

        begin(&story);
        issue(&story, 0);
        CHECK_INT(look_for(&story, PATIENCE), PROGRESS_SLOW);
        story.queues[0].thread = THREAD_STOPPED;
        CHECK_INT(look_a_second_later(&story), PROGRESS_UNSURE);
        story.queues[0].thread = THREAD_SLEEPS;
        CHECK_INT(look_a_second_later(&story), PROGRESS_SLOW);
        story.queues[0].thread = THREAD_STOPPED;
        CHECK_INT(look_a_second_later(&story), PROGRESS_UNSURE);
        CHECK_INT(look_a_second_later(&story), PROGRESS_STOPPED);
}

static void test_idle(void)
{
        struct story story;

        begin(&story);
        CHECK_INT(look_for(&story, 10 * PATIENCE), PROGRESS_MADE);
        CHECK(!progress_needs_threads(&story.memory, &story.look, PATIENCE));
}

/* Each request takes most of the patience: that is slow, and progress. */
static void test_requests_end(void)
{
        struct story story;

        begin(&story);
        for (unsigned i = 0; i < 8; i++) {
                issue(&story, 0);
                issue(&story, 0);
                CHECK_INT(look_for(&story, PATIENCE - SECONDS), PROGRESS_MADE);
                end(&story, 0);
        }
}

static void test_slow_store(void)
{
        struct story story;

        begin(&story);
        issue(&story, 1);
        CHECK_INT(look_for(&story, PATIENCE - 1), PROGRESS_MADE);
        CHECK(!progress_needs_threads(&story.memory, &story.look, PATIENCE));
        story.look.at++;
        CHECK(progress_needs_threads(&story.memory, &story.look, PATIENCE));
        CHECK_INT(look(&story), PROGRESS_UNSURE);
        story.look.at = progress_next(PROGRESS_UNSURE, story.look.at, PATIENCE);
        CHECK_INT(look(&story), PROGRESS_SLOW);
        CHECK(!progress_calls_for_kill(PROGRESS_SLOW));
        CHECK_INT(story.memory.queues[1].since, 1000 * SECONDS);
        end(&story, 1);
        story.look.at++;
        CHECK_INT(look(&story), PROGRESS_MADE);
}

/* The other queue goes on meanwhile, so requests of the disk end. */
static void test_one_queue_is_enough(void)
{
        struct story story;
        enum progress progress = PROGRESS_MADE;

        begin(&story);
        issue(&story, 1);
        for (unsigned i = 0; i < 32; i++) {
                CHECK_INT(progress, i < 31 ? PROGRESS_MADE : PROGRESS_UNSURE);
                issue(&story, 0);
                end(&story, 0);
                progress = look(&story);
                story.look.at += SECONDS;
        }
        CHECK_INT(progress, PROGRESS_SLOW);
}

static void test_stopped(void)
{
        struct story story;

        begin(&story);
        story.queues[0].thread = story.queues[1].thread = THREAD_STOPPED;
        story.look.stopped = true;
        issue(&story, -1); /* it has not taken it */
        CHECK_INT(look_for(&story, PATIENCE), PROGRESS_STOPPED);
        CHECK(progress_calls_for_kill(PROGRESS_STOPPED));
}

/* Of a flush the kernel does not say that it waits. */
static void test_stopped_without_requests(void)
{
        struct story story;

        begin(&story);
        story.look.stopped = true;
        CHECK_INT(look_for(&story, PATIENCE - 1), PROGRESS_MADE);
        story.look.stopped = false; /* SIGCONT */
        CHECK_INT(look_for(&story, PATIENCE), PROGRESS_MADE);
        story.look.stopped = true;
        CHECK_INT(look_for(&story, PATIENCE), PROGRESS_STOPPED);
}

static void test_spins(void)
{
        struct story story;

        begin(&story);
        story.queues[1].thread = THREAD_RUNS;
        story.cpu_share = 99;
        issue(&story, 1);
        CHECK_INT(look_for(&story, PATIENCE), PROGRESS_UNSURE);
        CHECK_INT(look_for(&story, SECONDS), PROGRESS_SPINS);
        CHECK(progress_calls_for_kill(PROGRESS_SPINS));
}

/* It spins before it has counted what came. */
static void test_spins_with_requests_that_it_has_not_counted(void)
{
        struct story story;

        begin(&story);
        story.queues[0].thread = THREAD_RUNS;
        story.cpu_share = 60;
        issue(&story, -1);
        CHECK_INT(look_for(&story, PATIENCE + SECONDS), PROGRESS_SPINS);
}

/* One that works on the other queue does not hide that. */
static void test_one_queue_spins_before_it_has_counted(void)
{
        struct story story;
        enum progress progress = PROGRESS_MADE;

        begin(&story);
        story.queues[1].thread = THREAD_RUNS;
        issue(&story, -1); /* of queue 1 */
        for (unsigned i = 0; i < 40 && progress != PROGRESS_SPINS; i++) {
                issue(&story, 0);
                end(&story, 0);
                story.queues[1].cpu_usec += SECONDS;
                CHECK(i < 30 || progress_needs_threads(&story.memory, &story.look, PATIENCE));
                progress = look(&story);
                CHECK(i >= 30 || progress == PROGRESS_MADE);
                story.look.at += SECONDS;
        }
        CHECK_INT(progress, PROGRESS_SPINS);
}

/* A queue without requests may wake up just as it is looked at. */
static void test_a_queue_without_requests_that_runs_is_not_starved(void)
{
        struct story story;

        begin(&story);
        story.queues[1].thread = THREAD_RUNS;
        for (unsigned i = 0; i < 40; i++) {
                enum progress progress = look(&story);

                CHECK(progress == PROGRESS_MADE || progress == PROGRESS_UNSURE);
                issue(&story, 0);
                story.look.at += SECONDS;
                end(&story, 0);
                issue(&story, 0);
                end(&story, 0);
                story.look.disk_in_flight = i % 2;
        }
}

/* A kill would not give it a CPU. */
static void test_starved(void)
{
        struct story story;

        begin(&story);
        story.queues[1].thread = THREAD_RUNS;
        story.cpu_share = 5;
        issue(&story, 1);
        CHECK_INT(look_for(&story, PATIENCE + SECONDS), PROGRESS_STARVED);
        CHECK(!progress_calls_for_kill(PROGRESS_STARVED));
        end(&story, 1);
        story.look.at += SECONDS;
        CHECK_INT(look(&story), PROGRESS_MADE);
}

/* A loop that turns is not one that spins, however busy it is: a request waits for its store. */
static void test_busy_loop(void)
{
        struct story story;
        enum progress progress = PROGRESS_MADE;

        begin(&story);
        story.queues[0].thread = THREAD_RUNS;
        issue(&story, 0);
        for (unsigned i = 0; i < 40; i++) {
                story.queues[0].rounds += 1000;
                story.queues[0].cpu_usec += SECONDS;
                progress = look(&story);
                story.look.at += SECONDS;
        }
        CHECK_INT(progress, PROGRESS_SLOW);
}

static void test_unaware(void)
{
        struct story story;

        begin(&story);
        issue(&story, -1);
        CHECK_INT(look_for(&story, PATIENCE), PROGRESS_LOST);
        CHECK(progress_calls_for_kill(PROGRESS_LOST));
}

/* What waits for limits, or for room in the store, is not lost. */
static void test_held(void)
{
        struct story story;

        begin(&story);
        story.look.held = true;
        issue(&story, -1);
        CHECK_INT(look_for(&story, 10 * PATIENCE), PROGRESS_MADE);
}

/* It says that by itself: StoreFull. */
static void test_full_store(void)
{
        struct story story;

        begin(&story);
        story.look.held = story.look.full = true;
        issue(&story, 0);
        CHECK_INT(look_for(&story, 10 * PATIENCE), PROGRESS_MADE);
}

/* Nothing is killed for what could not be read. */
static void test_threads_that_are_not_found(void)
{
        struct story story;

        begin(&story);
        story.queues[0].thread = story.queues[1].thread = THREAD_UNKNOWN;
        issue(&story, -1);
        CHECK_INT(look_for(&story, PATIENCE), PROGRESS_UNSURE);
        CHECK_INT(look_for(&story, 5 * SECONDS), PROGRESS_UNSURE);
}

static void test_a_kill_is_worth_its_price_only_if_requests_are_replayed_or_wait(void)
{
        static const struct {
                struct progress_price price;
                bool idle, waits; /* whether it is worth it */
                bool free;
        } rows[] = {
                {{.automatic = true, .replayed = true},                       true,  true,  true },
                {{.automatic = true},                                         false, true,  false},
                {{.automatic = true, .disk_goes = true},                      false, false, false},
                {{.automatic = true, .replayed = true, .fails_writes = true}, false, false, false},
                {{.replayed = true},                                          false, false, false},
        };
        const struct progress_memory idle = {}, waits = {.disk_since = 1};
        struct progress_seen seen = {.since = 1};
        const struct progress_memory queue_waits = {.count = 1, .queues = &seen};

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                CHECK_INT(progress_kill_is_worth(&rows[i].price, &idle), rows[i].idle);
                CHECK_INT(progress_kill_is_worth(&rows[i].price, &waits), rows[i].waits);
                CHECK_INT(progress_kill_is_worth(&rows[i].price, &queue_waits), rows[i].waits);
                CHECK_INT(progress_kill_is_free(&rows[i].price), rows[i].free);
        }
}

/* Of two queues the one counts that only a kill helps. */
static void test_the_worst_counts(void)
{
        struct story story;

        begin(&story);
        story.queues[1].thread = THREAD_RUNS;
        story.cpu_share = 100;
        issue(&story, 0);
        issue(&story, 1);
        CHECK_INT(look_for(&story, PATIENCE + SECONDS), PROGRESS_SPINS);
}

/* The machine was asleep between two looks: one look later requests end. */
static void test_a_clock_that_jumps(void)
{
        struct story story;

        begin(&story);
        story.queues[0].thread = story.queues[1].thread = THREAD_STOPPED;
        story.look.stopped = true;
        issue(&story, -1);
        CHECK_INT(look(&story), PROGRESS_MADE);
        story.look.at += 100 * PATIENCE;
        CHECK_INT(look(&story), PROGRESS_UNSURE);
        story.look.stopped = false;
        story.look.disk_ended++;
        story.look.disk_in_flight--;
        story.look.at = progress_next(PROGRESS_UNSURE, story.look.at, PATIENCE);
        CHECK_INT(look(&story), PROGRESS_MADE);
}

static void test_when_to_look(void)
{
        CHECK_INT(progress_next(PROGRESS_MADE, 5, PATIENCE), 5 + PATIENCE / 2);
        CHECK_INT(progress_next(PROGRESS_MADE, 5, 100 * PATIENCE), 5 + 15 * SECONDS);
        CHECK_INT(progress_next(PROGRESS_SLOW, 5, SECONDS), 5 + SECONDS / 2);
        CHECK_INT(progress_next(PROGRESS_UNSURE, 5, PATIENCE), 5 + SECONDS);
}

/* Return how long a standstill lasts until it is found that begins `late` after the device. */
static uint64_t found_after(uint32_t spread, uint64_t late)
{
        uint64_t begun = 1000 * SECONDS, broken = begun + late;
        enum progress progress = PROGRESS_MADE;
        struct story story;

        begin(&story);
        story.look.at = progress_first(spread, begun, PATIENCE);
        do {
                if (story.look.at >= broken && story.look.disk_in_flight == 0)
                        issue(&story, 0);
                progress = look(&story);
                if (progress == PROGRESS_SLOW)
                        return story.look.at - broken;
                story.look.at = progress_next(progress, story.look.at, PATIENCE);
        } while (story.look.at < broken + 3 * PATIENCE);
        return UINT64_MAX;
}

static void test_first_looks_are_spread(void)
{
        CHECK_INT(progress_first(0, 5, PATIENCE), 5);
        CHECK_INT(progress_first(1U << 31, 5, PATIENCE), 5 + PATIENCE / 4);
        CHECK(progress_first(UINT32_MAX, 5, PATIENCE) < 5 + PATIENCE / 2);
        CHECK(progress_first(UINT32_MAX, 5, PATIENCE) > 5 + PATIENCE / 2 - SECONDS);
        CHECK(progress_first(UINT32_MAX, 5, 1000 * PATIENCE) < 5 + 15 * SECONDS);
        for (unsigned i = 0; i < 16; i++)
                for (uint64_t late = 0; late < PATIENCE; late += SECONDS / 2)
                        CHECK(found_after(UINT32_MAX / 15 * i, late)
                                <= PATIENCE + PATIENCE / 2 + 2 * SECONDS);
}

int main(void)
{
        test_first_looks_are_spread();
        test_idle();
        test_a_request_that_ends_during_a_look();
        test_a_worker_that_is_stopped_for_a_moment_while_it_waits();
        test_requests_end();
        test_slow_store();
        test_one_queue_is_enough();
        test_stopped();
        test_stopped_without_requests();
        test_spins();
        test_spins_with_requests_that_it_has_not_counted();
        test_one_queue_spins_before_it_has_counted();
        test_a_queue_without_requests_that_runs_is_not_starved();
        test_starved();
        test_busy_loop();
        test_unaware();
        test_held();
        test_full_store();
        test_threads_that_are_not_found();
        test_a_kill_is_worth_its_price_only_if_requests_are_replayed_or_wait();
        test_the_worst_counts();
        test_a_clock_that_jumps();
        test_when_to_look();
        return check_report();
}
