/* SPDX-License-Identifier: MIT */
/* Writes without room: the count of those that wait, and when an episode begins and ends. */
#include "targets/worker/queue/room.h"
#include "tests/unit/check.h"
#include "tests/unit/shared_region.h"

#include <errno.h>

static struct shared shared;
static struct room room;
static struct region_space *space;
static const struct target_io io = {.op = IO_WRITE, .offset = 8192, .length = 4096};

static unsigned pauses, pauses_until_error;

void __wrap_await_pause(struct io_loop *loop, unsigned microseconds);

/* There is no coroutine. */
void __wrap_await_pause(struct io_loop *loop, unsigned microseconds)
{
        CHECK(!loop);
        CHECK(microseconds > 0);
        if (++pauses == pauses_until_error)
                space->on_full = REGION_ON_FULL_ERROR;
}

static void begin_again(enum region_on_full on_full)
{
        shared = shared_region_new();
        room_open(&room, &shared);
        space = &device_region_control(shared.region)->space;
        space->on_full = on_full;
}

static void test_what_is_missing_room(void)
{
        CHECK(room_is_missing(IO_WRITE, -ENOSPC));
        CHECK(room_is_missing(IO_WRITE, -EDQUOT));
        CHECK(room_is_missing(IO_DISCARD, -ENOSPC));
        CHECK(room_is_missing(IO_WRITE_ZEROES, -ENOSPC));
        CHECK(!room_is_missing(IO_FLUSH, -ENOSPC));
        CHECK(!room_is_missing(IO_READ, -ENOSPC));
        CHECK(!room_is_missing(IO_WRITE, -EIO));
        CHECK(!room_is_missing(IO_WRITE, 4096));
}

static void test_an_error_begins_an_episode(void)
{
        begin_again(REGION_ON_FULL_ERROR);
        room_round(&room);
        CHECK(!room.full);
        CHECK(!room_wait_co(&room, NULL, &io, ENOSPC, 0));
        CHECK(!room_wait_co(&room, NULL, &io, ENOSPC, 0));
        CHECK(space->full_since > 0 && space->waiting == 0);
        CHECK_INT(space->changes, 1);
        room_round(&room);
        CHECK(room.full);
        room_ended(&room, IO_WRITE, 0, -ENOSPC);
        room_ended(&room, IO_WRITE, 0, 4096); /* into blocks that are allocated, maybe */
        CHECK(space->full_since > 0);
        space->missed_at -= 2000000;
        room_ended(&room, IO_READ, 0, 4096);
        room_ended(&room, IO_DISCARD, 0, 0);
        CHECK(space->full_since > 0);
        room_ended(&room, IO_WRITE, 0, 4096);
        CHECK_INT(space->full_since, 0);
        CHECK_INT(space->changes, 2);
}

static void test_the_last_that_waited_ends_it(void)
{
        begin_again(REGION_ON_FULL_ERROR);
        (void)room_wait_co(&room, NULL, &io, ENOSPC, 0);
        space->waiting = 2;
        room_ended(&room, IO_WRITE, 3, 4096);
        CHECK(space->full_since > 0 && space->waiting == 1);
        room_ended(&room, IO_WRITE, 5, 4096);
        CHECK(space->full_since == 0 && space->waiting == 0);
}

/* A queue that leaves does not try it again, and answers it where the supervisor wants that. */
static void test_a_queue_that_leaves_lets_it_rest(void)
{
        for (unsigned tries = 0; tries < 2; tries++) {
                begin_again(REGION_ON_FULL_WAIT);
                pauses = 0;
                if (tries > 0)
                        CHECK(room_wait_co(&room, NULL, &io, ENOSPC, 0));
                room.leaves = true;
                pauses_until_error = 5;
                CHECK(!room_wait_co(&room, NULL, &io, ENOSPC, tries));
                CHECK_INT(pauses, pauses_until_error);
                CHECK_INT(room.resting, 0);
                room_ended(&room, IO_WRITE, tries, -ENOSPC);
                CHECK_INT(space->waiting, 0);
        }
        pauses_until_error = 0;
}

/* onFull becomes "wait" during the episode: the first write that waits is news for the supervisor. */
static void test_a_write_that_waits_later_is_news(void)
{
        uint32_t changes;

        begin_again(REGION_ON_FULL_ERROR);
        CHECK(!room_wait_co(&room, NULL, &io, ENOSPC, 0));
        changes = space->changes;
        space->on_full = REGION_ON_FULL_WAIT;
        CHECK(room_wait_co(&room, NULL, &io, ENOSPC, 0));
        CHECK_INT(space->waiting, 1);
        CHECK_INT(space->changes, changes + 1);
        CHECK(room_wait_co(&room, NULL, &io, ENOSPC, 1)); /* the same write again, and another one */
        CHECK(room_wait_co(&room, NULL, &io, ENOSPC, 0));
        CHECK_INT(space->waiting, 2);
        CHECK_INT(space->changes, changes + 1);
}

static void test_an_episode_that_begins_with_a_wait_is_one_news(void)
{
        begin_again(REGION_ON_FULL_WAIT);
        CHECK(room_wait_co(&room, NULL, &io, ENOSPC, 0));
        CHECK_INT(space->waiting, 1);
        CHECK_INT(space->changes, 1);
}

static void test_the_first_request_of_an_episode_is_noted(void)
{
        static const struct target_io other = {.op = IO_WRITE_ZEROES, .offset = 1 << 20, .length = 512};
        const struct region_missed *missed;

        begin_again(REGION_ON_FULL_ERROR);
        missed = &device_region_control(shared.region)->missed;
        (void)room_wait_co(&room, NULL, &io, EDQUOT, 0);
        (void)room_wait_co(&room, NULL, &other, ENOSPC, 0);
        CHECK_INT(missed->since, space->full_since);
        CHECK_INT(missed->offset, 8192);
        CHECK_INT(missed->length, 4096);
        CHECK_INT(missed->op, STATS_WRITE);
        CHECK_INT(missed->error, EDQUOT);
        space->full_since = 0;
        (void)room_wait_co(&room, NULL, &other, ENOSPC, 0);
        CHECK_INT(missed->since, space->full_since);
        CHECK_INT(missed->op, STATS_WRITE_ZEROES);
        CHECK_INT(missed->error, ENOSPC);
}

/* Nothing waits in a worker that has just been started. */
static void test_the_next_worker_counts_from_zero(void)
{
        begin_again(REGION_ON_FULL_WAIT);
        space->waiting = 7;
        space->full_since = 1;
        room_begin(&shared);
        CHECK(space->waiting == 0 && space->full_since == 1);
}

int main(void)
{
        test_what_is_missing_room();
        test_an_error_begins_an_episode();
        test_the_last_that_waited_ends_it();
        test_a_queue_that_leaves_lets_it_rest();
        test_a_write_that_waits_later_is_news();
        test_an_episode_that_begins_with_a_wait_is_one_news();
        test_the_first_request_of_an_episode_is_noted();
        test_the_next_worker_counts_from_zero();
        return check_report();
}
