/* SPDX-License-Identifier: MIT */
/* Writes that the backing store has no room for (ENOSPC, EDQUOT).
 *
 * With onFull "error" the client gets the error. With "wait" the write is tried again, with pauses, until
 * there is room; other requests go on. The supervisor may change onFull at any time, and sets it to "error"
 * before it stops the disk, since STOP_DEV waits for every request. A pause is short enough for that. A queue that
 * leaves does not try the write again: the next worker begins it, or the client gets the error if onFull becomes "error".
 *
 * From the first write that found no room until one succeeds again is an episode, which the supervisor shows.
 * During it all writes go through coroutines, where their success is seen. An episode lasts at least as long
 * as EPISODE_MIN after the last write that found no room: on a full store some writes succeed.
 *
 * On the queue's thread; what the queues share is in the region. */
#pragma once

#include "targets/worker/io/io_loop.h"
#include "targets/worker/queue/shared_fault.h"

struct room {
        const struct shared *shared;
        struct region_space *space; /* of the device's region, as the next one */
        struct region_missed *missed;
        bool full;        /* an episode, as seen in this round */
        bool leaves;      /* the queue does: a write that waits is left to the next worker */
        unsigned resting; /* writes of this queue that wait, and are not being tried */
};

/* Initialise the room of a queue. `shared` must outlive it. */
void room_open(struct room *room, const struct shared *shared);
/* Note that no write waits, before the first queue serves. */
void room_begin(const struct shared *shared);

/* Begin a round. One load. */
static inline void room_round(struct room *room)
{
        room->full = __atomic_load_n(&room->space->full_since, __ATOMIC_RELAXED) != 0;
}

/* Return whether a request of `op` with that result found no room. */
static inline bool room_is_missing(enum io_op op, int result)
{
        return (result == -ENOSPC || result == -EDQUOT) && op != IO_READ && op != IO_FLUSH;
}

/* Suspend a request that found no room, after `tries` pauses. error: ENOSPC or EDQUOT. Return whether to try it again;
 * false at once with onFull "error". */
bool room_wait_co(
        struct room *room, struct io_loop *loop, const struct target_io *io, int error, unsigned tries);
/* Note the end of a request of `op` that has paused `tries` times, or of one while room->full. */
void room_ended(struct room *room, enum io_op op, unsigned tries, int result);
