/* SPDX-License-Identifier: MIT */
/* Mutex, read-write lock and condition: lists of coroutines, first come, first served. */
#include "targets/worker/wait/scope.h"
#include "targets/worker/wait/waiters.h"

/* ---- a mutex ---- */

/* Kept apart from await_mutex(), of which most calls find the mutex free. */
void co_mutex_wait_co(struct target_queue *queue, struct co_mutex *mutex)
{
        struct co_waiter waiter = {};

        co_waiters_wait_co(queue, &mutex->waiters, &waiter);
}

void co_mutex_hand_over(struct co_mutex *mutex)
{
        co_waiter_wake(co_waiters_take(&mutex->waiters)); /* it stays held */
}

/* ---- a read-write lock ---- */

/* Let in those at the head of the line, as far as they are compatible. */
static void let_in(struct co_rwlock *lock)
{
        while (lock->waiters.first && !lock->writer) {
                if (lock->waiters.first->writes && lock->readers > 0)
                        return;
                if (lock->waiters.first->writes)
                        lock->writer = true;
                else
                        lock->readers++;
                co_waiter_wake(co_waiters_take(&lock->waiters));
        }
}

void await_rwlock_read(struct target_queue *queue, struct co_rwlock *lock)
{
        struct co_waiter waiter = {};

        if (lock->writer || lock->waiters.first)
                co_waiters_wait_co(queue, &lock->waiters, &waiter);
        else
                lock->readers++;
}

void await_rwlock_write(struct target_queue *queue, struct co_rwlock *lock)
{
        struct co_waiter waiter = {.writes = true};

        if (lock->writer || lock->readers > 0)
                co_waiters_wait_co(queue, &lock->waiters, &waiter);
        else
                lock->writer = true;
}

void co_rwlock_unlock_read(struct co_rwlock *lock)
{
        assert(lock->readers > 0 && !lock->writer);
        lock->readers--;
        let_in(lock);
}

void co_rwlock_unlock_write(struct co_rwlock *lock)
{
        assert(lock->writer);
        lock->writer = false;
        let_in(lock);
}

void co_rwlock_downgrade(struct co_rwlock *lock)
{
        assert(lock->writer);
        lock->writer = false;
        lock->readers++;
        let_in(lock);
}

/* ---- a condition ---- */

struct condition_wait {
        struct scope_wait wait; /* first: cancel_condition() gets this */
        struct co_waiter waiter;
        struct co_condition *condition;
        int result;
};

static bool cancel_condition(struct io_loop *loop, struct scope_wait *wait)
{
        struct condition_wait *self = (struct condition_wait *)wait;

        (void)loop;
        if (self->result == -EINPROGRESS) { /* else it was signalled, and only has to run */
                self->result = -ECANCELED;
                co_waiters_remove(&self->condition->waiters, &self->waiter);
                co_waiter_wake(&self->waiter);
        }
        return true;
}

int await_condition(struct target_queue *queue, struct co_condition *condition, struct co_mutex *mutex)
{
        struct io_loop *loop = io_loop_of(queue);
        struct condition_wait self = {.condition = condition, .result = -EINPROGRESS};

        if (scope_is_stopping(loop))
                return -ECANCELED;
        if (mutex)
                co_mutex_unlock(mutex);
        scope_wait_begin(loop, &self.wait, cancel_condition);
        co_waiters_wait_co(queue, &condition->waiters, &self.waiter);
        scope_wait_end(&self.wait);
        if (mutex)
                await_mutex(queue, mutex);
        return self.result;
}

void co_condition_signal(struct co_condition *condition)
{
        struct co_waiter *waiter = co_waiters_take(&condition->waiters);

        if (!waiter)
                return;
        ((struct condition_wait *)((char *)waiter - offsetof(struct condition_wait, waiter)))->result = 0;
        co_waiter_wake(waiter);
}

void co_condition_broadcast(struct co_condition *condition)
{
        while (condition->waiters.first)
                co_condition_signal(condition);
}
