/* SPDX-License-Identifier: MIT */
/* Writes that the backing store has no room for. */
#include "targets/worker/queue/room.h"
#include "targets/worker/io/await.h"
#include "ublkd/base/clock.h"

enum {
        PAUSE_FIRST = 20 * 1000,  /* microseconds */
        PAUSE_LONGEST_SHIFT = 4,  /* the longest is the first one times two to the power of this: 320 ms */
        EPISODE_MIN = 1000 * 1000 /* microseconds */
};

void room_open(struct room *room, const struct shared *shared)
{
        struct region_control *control = device_region_control(shared->region);

        *room = (struct room){.shared = shared, .space = &control->space, .missed = &control->missed};
}

void room_begin(const struct shared *shared)
{
        __atomic_store_n(&device_region_control(shared->region)->space.waiting, 0, __ATOMIC_RELAXED);
}

/* The episode begins or ends, or writes begin to wait: the supervisor has to show it. */
static void announce(const struct room *room)
{
        __atomic_add_fetch(&room->space->changes, 1, __ATOMIC_RELEASE);
        (void)eventfd_write(room->shared->news, 1); /* fails only where the main thread has news already */
}

/* Before the episode is announced. An earlier look finds the `since` of another episode. */
static void note_request(struct region_missed *missed, const struct target_io *io, int error, uint64_t since)
{
        __atomic_store_n(&missed->offset, io->offset, __ATOMIC_RELAXED);
        __atomic_store_n(&missed->length, io->length, __ATOMIC_RELAXED);
        __atomic_store_n(
                &missed->op, (uint32_t)io->op, __ATOMIC_RELAXED); /* the orders of both enums are one */
        __atomic_store_n(&missed->error, (uint32_t)error, __ATOMIC_RELAXED);
        __atomic_store_n(&missed->since, since, __ATOMIC_RELEASE);
}

/* Return whether the episode begins with it. */
static bool note_missing(struct room *room, const struct target_io *io, int error)
{
        uint64_t none = 0, now = clock_usec(CLOCK_REALTIME);

        room->full = true;
        __atomic_store_n(&room->space->missed_at, clock_usec(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
        if (!__atomic_compare_exchange_n(
                    &room->space->full_since, &none, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                return false;
        note_request(room->missed, io, error, now);
        announce(room);
        return true;
}

/* onFull may have become "wait" during the episode. Its begin was announced already: where room comes and goes with each
 * write, two NEWS more of each would be more than the supervisor accepts. */
static void note_waiting(const struct room *room, bool begins)
{
        if (__atomic_add_fetch(&room->space->waiting, 1, __ATOMIC_RELAXED) == 1 && !begins)
                announce(room);
}

static bool waits_for_room(const struct room *room)
{
        return __atomic_load_n(&room->space->on_full, __ATOMIC_ACQUIRE) == REGION_ON_FULL_WAIT;
}

bool room_wait_co(
        struct room *room, struct io_loop *loop, const struct target_io *io, int error, unsigned tries)
{
        bool begins = note_missing(room, io, error);

        if (!waits_for_room(room))
                return false;
        if (tries == 0)
                note_waiting(room, begins);
        room->resting++;
        do {
                await_pause(loop, PAUSE_FIRST << (tries < PAUSE_LONGEST_SHIFT ? tries : PAUSE_LONGEST_SHIFT));
        } while (room->leaves && waits_for_room(room));
        room->resting--;
        if (room->leaves && tries == 0)
                __atomic_sub_fetch(&room->space->waiting, 1, __ATOMIC_RELAXED);
        return !room->leaves; /* the process may end while it is tried again, and the next worker would repeat it */
}

/* at_once: the last of those that waited has succeeded. */
static void note_found(struct room *room, bool at_once)
{
        uint64_t since = __atomic_load_n(&room->space->full_since, __ATOMIC_ACQUIRE);
        uint64_t missed_at = __atomic_load_n(&room->space->missed_at, __ATOMIC_RELAXED);

        if (since == 0 || __atomic_load_n(&room->space->waiting, __ATOMIC_RELAXED) > 0
                || (!at_once && clock_usec(CLOCK_MONOTONIC) - missed_at < EPISODE_MIN))
                return;
        if (__atomic_compare_exchange_n(
                    &room->space->full_since, &since, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                announce(room);
}

void room_ended(struct room *room, enum io_op op, unsigned tries, int result)
{
        if (tries > 0)
                __atomic_sub_fetch(&room->space->waiting, 1, __ATOMIC_RELAXED);
        if (result >= 0 && (op == IO_WRITE || op == IO_WRITE_ZEROES))
                note_found(room, tries > 0);
}
