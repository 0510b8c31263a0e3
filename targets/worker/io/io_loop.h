/* SPDX-License-Identifier: MIT */
/* One thread's world: an io_uring, its coroutines, and those of them that may go on.
 *
 * The owner of the loop (ublk_queue, or a test) turns it in rounds: submit everything and wait, look at every
 * completion, run the coroutines that became ready. It decides what a completion is by user_data_kind().
 * Everything here belongs to the thread that called io_loop_init(). */
#pragma once

#include "targets/target.h"
#include "targets/worker/io/co.h"
#include "targets/worker/io/io_ring.h"

#include <assert.h>

enum {
        IO_LOOP_COMMAND_FILE = 0, /* file 0 of a loop: /dev/ublkcN, the fence (see ublk_queue.c) */
        IO_LOOP_FIRST_FILE = 1,   /* file 1 + N: target_device.files[N] */
        IO_LOOP_FILES = IO_LOOP_FIRST_FILE + TARGET_FILES_MAX,
};

/* Which side keeps the files of a loop open. */
enum io_loop_holder {
        IO_LOOP_HELD_BY_RING, /* they are fixed files, and open until the ring's last request is finished */
        IO_LOOP_HELD_BY_PROCESS, /* their opener keeps them open until the loop is destroyed */
};

struct io_loop {
        struct target_queue queue; /* as targets see it; io_loop_of() leads back */
        struct io_uring ring;
        bool ring_open;
        uint8_t file_flags;       /* of all entries: IOSQE_FIXED_FILE, or 0 */
        int files[IO_LOOP_FILES]; /* by number: what an entry calls them */
        struct co_pool coroutines;
        unsigned nudges;         /* under way */
        unsigned inline_cqes;    /* entries since the last submission whose completion comes with it */
        struct co_list ready;    /* resumed by io_loop_run_ready() */
        struct co_list starved;  /* found the submission queue full; ready again after the next submission */
        struct wait_room *waits; /* of targets/worker/wait/; NULL: the target declares none */
        unsigned residents;      /* coroutines that run, and belong to no request */
};

/* Set up ring, files and `coroutines` stacks for `depth` requests at a time; `depth` commands of the owner
 * may be in flight beside them. command_fd: becomes file 0, or -1. The device's files must be open. Calls
 * nothing of the target. Return 0 or -errno, with the loop as good as destroyed. */
int io_loop_init(struct io_loop *loop, struct target_device *device, unsigned index, unsigned depth,
        unsigned coroutines, int command_fd, enum io_loop_holder holder);
/* Let the loop be turned from here on. What its ring may do is fixed for good: io_ring_start(). Return 0 or
 * -errno. */
int io_loop_start(struct io_loop *loop);
/* Close the ring and free the stacks. No coroutine may be busy. A zero-initialised or destroyed loop is fine.
 */
void io_loop_destroy(struct io_loop *loop);

/* Submit all entries. wait: until there is a completion beside those of `inline_cqes` entries, unless a
 * coroutine that found the queue full can run; !wait: only look for completions. Return 0, also after an
 * interruption, which is a round without completions; or -errno: the ring is unusable. */
int io_loop_submit(struct io_loop *loop, bool wait);

/* Submit as io_loop_submit() with `wait`, but look for completions again and again for `poll` nanoseconds
 * first, and wait until `timeout` nanoseconds have passed in all at the latest (UINT64_MAX: without end). */
int io_loop_submit_for(struct io_loop *loop, uint64_t poll, uint64_t timeout);

/* Return a free submission entry, after submitting what fills the queue if necessary; NULL: none is free even
 * so, try again in the next round. */
struct io_uring_sqe *io_loop_sqe(struct io_loop *loop);

/* Return the number in the ring of place `place` of the descriptors that the queue reserves for its target; the one after
 * the last is reserved for the threads of await_work(), if there are any. */
static inline unsigned io_loop_place(const struct io_loop *loop, unsigned place)
{
        return IO_LOOP_FIRST_FILE + loop->queue.device->file_count + place;
}

/* Return the number in the ring of the place behind all these, which is reserved for orders of actions, if the target has
 * verbs. */
static inline unsigned io_loop_action_place(const struct io_loop *loop)
{
        const struct target_waits *waits = &loop->queue.device->target->desc->waits;

        return io_loop_place(loop, waits->files + (waits->work_threads > 0));
}

/* Return the number in the ring of the last place, which is reserved for the call to leave. */
static inline unsigned io_loop_leave_place(const struct io_loop *loop)
{
        return io_loop_action_place(loop) + (loop->queue.device->target->act != NULL);
}

/* Set the file of a prepared entry to one of the loop. */
static inline void io_loop_set_file(const struct io_loop *loop, struct io_uring_sqe *sqe, unsigned file)
{
        sqe->fd = loop->files[file];
        sqe->flags |= loop->file_flags;
}

/* Wake the kernel's threads of this loop with an operation that does nothing. Call it once in a while as long as
 * operations are late: in Linux 7.0 to 7.2 an operation that the kernel leaves to such a thread, and that comes as the
 * last thread goes idle, can wait until another one comes (io_wq_dec_running(), io_uring/io-wq.c). The completion is a
 * USER_DATA_NUDGE, for io_loop_nudged(). Return whether one was sent: not if all threads wait, so that many nudges wait
 * behind them. */
bool io_loop_nudge(struct io_loop *loop);

static inline void io_loop_nudged(struct io_loop *loop)
{
        loop->nudges -= loop->nudges > 0;
}

/* Run every coroutine that is ready, and those that become ready meanwhile. */
void io_loop_run_ready(struct io_loop *loop);

static inline struct io_loop *io_loop_of(const struct target_queue *queue)
{
        return (struct io_loop *)((char *)(uintptr_t)queue->of_disk - offsetof(struct io_loop, queue));
}

/* One operation that a coroutine waits for; on that coroutine's stack. */
struct await {
        struct co *co;
        int result;
};

/* What a completion belongs to: the low bits of user_data. An await is a pointer, so its kind must be 0. */
enum user_data_kind {
        USER_DATA_AWAIT,   /* the rest: struct await * */
        USER_DATA_COMMAND, /* the rest: the owner's, at most 62 bits */
        USER_DATA_PLAIN,   /* the rest: a pointer of the owner's */
        USER_DATA_TICK,    /* time has passed, or USER_DATA_NUDGE */
        _USER_DATA_KIND_MAX
};

enum { USER_DATA_KIND_BITS = 2, USER_DATA_KIND_MASK = (1 << USER_DATA_KIND_BITS) - 1 };
_Static_assert(_USER_DATA_KIND_MAX <= USER_DATA_KIND_MASK + 1, "the kind fits into its bits");
_Static_assert(_Alignof(struct await) > USER_DATA_KIND_MASK, "a pointer leaves room for the kind");

/* Of an operation that does nothing. */
#define USER_DATA_NUDGE (UINT64_C(1) << USER_DATA_KIND_BITS | USER_DATA_TICK)

static inline enum user_data_kind user_data_kind(uint64_t user_data)
{
        return (enum user_data_kind)(user_data & USER_DATA_KIND_MASK);
}

static inline uint64_t user_data_await(const struct await *await)
{
        return (uintptr_t)await;
}

static inline uint64_t user_data_command(uint64_t of_owner)
{
        return of_owner << USER_DATA_KIND_BITS | USER_DATA_COMMAND;
}

static inline uint64_t user_data_plain(void *of_owner)
{
        return (uintptr_t)of_owner | USER_DATA_PLAIN;
}

static inline void *user_data_of_plain(uint64_t user_data)
{
        return (void *)(uintptr_t)(user_data - USER_DATA_PLAIN);
}

static inline uint64_t user_data_of_command(uint64_t user_data)
{
        return user_data >> USER_DATA_KIND_BITS;
}

/* Note that the operation behind an await is done: its coroutine continues in io_loop_run_ready(). */
static inline void io_loop_wake(struct io_loop *loop, uint64_t user_data, int result)
{
        struct await *await = (struct await *)(uintptr_t)user_data;

        await->result = result;
        co_list_append(&loop->ready, await->co);
}
