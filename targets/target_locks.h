/* SPDX-License-Identifier: MIT */
/* Locks between the requests of one queue, for a target whose state must not change under it while it waits.
 *
 * Between two awaits a queue is atomic, so a lock is needed only where an await lies between the reading of a
 * state and its writing. Each lock belongs to one queue: all its users are coroutines of that queue, on its
 * thread. It is a struct of the target, zeroed before its first use, that owns no memory: what waits for it
 * lies on the stack of the coroutine that waits. Nothing here fails, and there is no way to give up waiting;
 * so a coroutine of the background that is asked to stop still gets its locks, and the next await returns
 * -ECANCELED.
 *
 * Waiting is first come, first served, without exception, and a lock is handed over: the coroutine that
 * releases it makes the next one its holder, and no other can come between. So each order of calls leads to
 * one order of holders. Coroutines that get a lock continue in the order in which they got it, after the one
 * that released it suspends or ends.
 *
 * The worker does not look for deadlocks: take several locks in one order everywhere, and no lock twice. A
 * process that dies takes its locks along: a lock protects memory of the process, never what is on a disk. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct target_queue;

/* Coroutines that wait, the first to come first. Opaque: only the core looks into it. */
struct co_waiter;
struct co_waiters {
        struct co_waiter *first, *last;
};

/* ---- a mutex ---- */

struct co_mutex {
        bool held;
        struct co_waiters waiters;
};

void co_mutex_wait_co(struct target_queue *queue, struct co_mutex *mutex);
void co_mutex_hand_over(struct co_mutex *mutex);

/* Acquire the mutex. On a coroutine of `queue`; suspends while another one holds it. */
static inline void await_mutex(struct target_queue *queue, struct co_mutex *mutex)
{
        if (__builtin_expect(mutex->held, 0))
                co_mutex_wait_co(queue, mutex);
        mutex->held = true;
}

/* Release a mutex that the caller holds. Does not suspend. */
static inline void co_mutex_unlock(struct co_mutex *mutex)
{
        if (__builtin_expect(mutex->waiters.first != NULL, 0))
                co_mutex_hand_over(mutex);
        else
                mutex->held = false;
}

/* ---- a read-write lock ---- */

/* Readers share it, a writer is alone. A reader that comes while a writer waits queues behind that writer, so
 * neither side starves; so a coroutine that has it as a reader must not ask for it again. */
struct co_rwlock {
        unsigned readers; /* that hold it */
        bool writer;      /* one holds it */
        struct co_waiters waiters;
};

/* Acquire it. On a coroutine of `queue`; suspend until it is free for this use, and for all that came
 * before. */
void await_rwlock_read(struct target_queue *queue, struct co_rwlock *lock);
void await_rwlock_write(struct target_queue *queue, struct co_rwlock *lock);
/* Release it as it was acquired. Does not suspend. */
void co_rwlock_unlock_read(struct co_rwlock *lock);
void co_rwlock_unlock_write(struct co_rwlock *lock);
/* Make the writer that holds it a reader, before any that wait. Does not suspend. */
void co_rwlock_downgrade(struct co_rwlock *lock);

/* ---- a lock of ranges ---- */

enum co_range_use {
        CO_RANGE_EXCLUSIVE, /* conflicts with everything that overlaps: of writers */
        CO_RANGE_SHARED,    /* conflicts with what is exclusive: of readers that choose to wait for writers */
};

/* A part of something, that its holder or one that waits for it has on its stack. */
struct co_range {
        uint64_t offset, end; /* bytes, or any unit; the end is not in it */
        enum co_range_use use;
        unsigned blockers; /* those before it, held or waiting, that it conflicts with */
        struct co_waiter *waiter;
        struct co_range *previous, *next;
};

/* All ranges that are held or waited for, the first to come first. Acquiring and releasing look at each of
 * them: the depth of the queue bounds their number, if each request has one. */
struct co_range_lock {
        struct co_range *first, *last;
};

/* Acquire [offset, offset + length) and note it in `range`, which stays at its place until it is released. On
 * a coroutine of `queue`; suspends while a conflicting range that came before is held or waited for. An empty
 * range conflicts with none; one that would reach beyond the last number ends there. */
void await_range(struct target_queue *queue, struct co_range_lock *lock, struct co_range *range,
        uint64_t offset, uint64_t length, enum co_range_use use);
/* Release a range that is held. Does not suspend. */
void co_range_unlock(struct co_range_lock *lock, struct co_range *range);

/* ---- a condition ---- */

/* What a coroutine waits for is a state of the target: ask for it again after each wait. */
struct co_condition {
        struct co_waiters waiters;
};

/* Release the mutex, wait for a signal, and acquire the mutex again, whatever is returned. On a coroutine of
 * `queue` that holds the mutex; suspends. mutex: NULL where no await lies between the question and this call.
 * Return 0, or -ECANCELED: this coroutine of the background is asked to stop. */
int await_condition(struct target_queue *queue, struct co_condition *condition, struct co_mutex *mutex);
/* Wake the coroutine that has waited for the longest time, if there is one; or all, in the order in which
 * they came. From any code on the thread of the queue. Do not suspend. */
void co_condition_signal(struct co_condition *condition);
void co_condition_broadcast(struct co_condition *condition);
