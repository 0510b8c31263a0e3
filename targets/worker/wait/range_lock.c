/* SPDX-License-Identifier: MIT */
/* A lock of ranges.
 *
 * All ranges are in one list, in the order in which they came. Each counts those before it that it conflicts
 * with, whether they hold or wait, and holds once there are none: so of those that overlap, each waits for
 * all that came earlier, and none is overtaken. A range that is released is taken from the counts of those
 * behind it. */
#include "targets/worker/wait/waiters.h"

static bool conflict(const struct co_range *one, const struct co_range *other)
{
        uint64_t begin = one->offset > other->offset ? one->offset : other->offset;
        uint64_t end = one->end < other->end ? one->end : other->end;

        return begin < end && (one->use == CO_RANGE_EXCLUSIVE || other->use == CO_RANGE_EXCLUSIVE);
}

static uint64_t end_of(uint64_t offset, uint64_t length)
{
        return length > UINT64_MAX - offset ? UINT64_MAX : offset + length;
}

void await_range(struct target_queue *queue, struct co_range_lock *lock, struct co_range *range,
        uint64_t offset, uint64_t length, enum co_range_use use)
{
        struct co_waiter waiter = {.co = co_current(&io_loop_of(queue)->coroutines)};

        *range = (struct co_range){
                .offset = offset, .end = end_of(offset, length), .use = use, .previous = lock->last};
        for (const struct co_range *each = lock->first; each; each = each->next)
                range->blockers += conflict(each, range);
        if (lock->last)
                lock->last->next = range;
        else
                lock->first = range;
        lock->last = range;
        if (range->blockers == 0)
                return;
        range->waiter = &waiter;
        co_suspend(waiter.co);
        range->waiter = NULL;
}

void co_range_unlock(struct co_range_lock *lock, struct co_range *range)
{
        assert(range->blockers == 0);
        for (struct co_range *each = range->next; each; each = each->next)
                if (conflict(range, each) && --each->blockers == 0)
                        co_waiter_wake(each->waiter);
        if (range->next)
                range->next->previous = range->previous;
        else
                lock->last = range->previous;
        if (range->previous)
                range->previous->next = range->next;
        else
                lock->first = range->next;
}
