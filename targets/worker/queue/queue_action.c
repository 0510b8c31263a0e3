/* SPDX-License-Identifier: MIT */
/* Carries out actions of the target, one after another. */
#include "targets/worker/queue/queue_action.h"
#include "targets/worker/io/await.h"
#include "ublkd/base/clock.h"
#include "ublkd/proto/region_action.h"

#include <sys/eventfd.h>

enum {
        NAP_MAX = 20 * 1000
                  * 1000, /* nanoseconds: how long the end of the worker may wait for an action that naps */
        RETRIES_MAX = 16, /* of a read that the kernel had no room for */
        RETRY_NSEC = 250 * 1000 * 1000
};

static bool acts(const struct target_device *device, unsigned index)
{
        return index == 0 && device->target->act;
}

static struct queue_action *of(const struct target_action *action)
{
        return (struct queue_action *)(uintptr_t)action;
}

static struct io_loop *loop_of(const struct queue_action *self)
{
        return io_loop_of(self->action.queue);
}

/* ---- what targets call ---- */

bool target_action_is_over(const struct target_action *action)
{
        const struct queue_action *self = of(action);

        return self->ends || region_action_is_cancelled(self->port->control, self->id);
}

void target_action_progress(struct target_action *action, uint64_t done, uint64_t total)
{
        region_action_progress(of(action)->port->control, done, total);
}

void target_action_found(struct target_action *action, uint64_t offset, uint64_t length)
{
        region_action_found(of(action)->port->control, offset, length);
}

void target_action_number(struct target_action *action, uint32_t number)
{
        region_action_number(of(action)->port->control, number);
}

void target_action_ended(struct target_action *action, int result)
{
        region_action_end(of(action)->port->control, result >= 0 ? REGION_ACTION_DONE : REGION_ACTION_FAILED,
                result >= 0 ? 0 : -result);
}

/* In moments, between which it is asked to end. Return 0 or -ECANCELED. */
static int nap_until(struct queue_action *self, uint64_t at)
{
        uint64_t now = clock_nsec(CLOCK_MONOTONIC);

        if (at > now)
                await_pause(loop_of(self), (unsigned)((at - now < NAP_MAX ? at - now : NAP_MAX) / 1000 + 1));
        return target_action_is_over(&self->action) ? -ECANCELED : 0;
}

/* With other limits it asks again, and so does not wait for the time of the old ones. */
static int wait_for_limits(struct queue_action *self, uint32_t length)
{
        unsigned changes = self->throttle->changes;
        uint64_t start = throttle_take(self->throttle, IO_READ, length, clock_nsec(CLOCK_MONOTONIC));
        int r = 0;

        while (r >= 0 && start > clock_nsec(CLOCK_MONOTONIC)) {
                r = nap_until(self, start);
                if (changes == self->throttle->changes)
                        continue;
                changes = self->throttle->changes;
                start = throttle_take(self->throttle, IO_READ, length, clock_nsec(CLOCK_MONOTONIC));
        }
        return r;
}

/* Time in which it was slower than its rate does not let it be faster afterwards. */
static int wait_for_rate(struct queue_action *self, uint32_t length, uint64_t rate)
{
        uint64_t now = clock_nsec(CLOCK_MONOTONIC);
        int r = 0;

        if (self->next_at < now)
                self->next_at = now;
        while (r >= 0 && self->next_at > clock_nsec(CLOCK_MONOTONIC))
                r = nap_until(self, self->next_at);
        self->next_at += (uint64_t)((double)length * 1e9 / (double)rate);
        return r;
}

int await_action_share(struct target_action *action, uint32_t length, uint64_t rate)
{
        struct queue_action *self = of(action);
        int r = target_action_is_over(action) ? -ECANCELED : 0;

        assert(rate > 0);
        for (uint32_t taken = 0, size; r >= 0 && taken < length; taken += size) {
                size = length - taken < self->max_io_size ? length - taken : self->max_io_size;
                r = wait_for_limits(self, size);
        }
        return r < 0 ? r : wait_for_rate(self, length, rate);
}

/* As the reads of requests (await_transfer()), but for two things: a pause looks whether the action is over, and what the
 * kernel had no room for does not count as an error of the medium. */
static int read_some(struct queue_action *self, unsigned file, void *memory, uint32_t length, uint64_t offset)
{
        struct io_loop *loop = loop_of(self);
        int r = -EAGAIN;

        for (unsigned tries = 0; (r == -EAGAIN || r == -EINTR) && tries <= RETRIES_MAX; tries++) {
                struct io_uring_sqe *sqe;
                uint64_t until = clock_nsec(CLOCK_MONOTONIC) + RETRY_NSEC;

                while (tries > 1 && clock_nsec(CLOCK_MONOTONIC) < until)
                        if (nap_until(self, until) < 0)
                                return -ECANCELED;
                sqe = await_sqe(loop);
                io_uring_prep_read(sqe, -1, memory, length, offset);
                io_loop_set_file(loop, sqe, file);
                sqe->flags |= tries > 0 ? IOSQE_ASYNC : 0;
                self->reads++;
                r = await_operation(loop, sqe);
                self->reads++;
        }
        return r == -EINTR ? -EAGAIN : r;
}

int await_action_read(struct target_action *action, const struct target_queue *queue, unsigned file,
        void *memory, uint32_t length, uint64_t offset)
{
        struct queue_action *self = of(action);
        uint32_t done = 0;

        assert(file < queue->device->file_count);
        while (done < length) {
                int r = target_action_is_over(action) ? -ECANCELED : 0;

                if (r >= 0)
                        r = read_some(self, IO_LOOP_FIRST_FILE + queue->first_file + file,
                                (char *)memory + done, length - done, offset + done);

                if (r == 0
                        || (r == -EINVAL && done > 0)) /* the store ends there, for direct I/O in a block */
                        return -EIO;
                if (r < 0)
                        return r;
                done += (uint32_t)r;
        }
        return (int)done;
}

/* ---- the coroutine ---- */

/* Whether it was asked to end, or has ended by itself, shows what it returns. */
static enum region_action_state state_of(const struct queue_action *self, int result)
{
        if (result >= 0)
                return REGION_ACTION_DONE;
        if (result != -ECANCELED)
                return REGION_ACTION_FAILED;
        return self->ends ? REGION_ACTION_LEFT : REGION_ACTION_CANCELLED;
}

static void carry_out(struct queue_action *self, const struct action_order *order)
{
        struct region_control *control = self->port->control;
        enum region_action_state state;
        int r;

        self->id = order->id;
        self->next_at = 0;
        self->action.arguments = order->arguments;
        self->action.node = order->node;
        self->action.memory = self->port->memory;
        r = self->action.queue->device->target->act(&self->action, order->verb);
        state = state_of(self, r);
        region_action_end(control, state, state == REGION_ACTION_FAILED ? -r : 0);
        self->id = 0;
        action_port_done(self->port);
}

/* As work_co(): the descriptor is ours, and stays open, so that no error of it is known. */
static void action_co(void *argument)
{
        struct queue_action *self = argument;
        struct io_loop *loop = loop_of(self);
        int r = 0;

        while (!self->ends && (r >= 0 || r == -EINTR || r == -EAGAIN)) {
                const struct action_order *order = action_port_take(self->port);
                struct io_uring_sqe *sqe;

                if (order) {
                        carry_out(self, order);
                        continue;
                }
                sqe = await_sqe(loop);
                io_uring_prep_read(sqe, self->orders, &self->orders_read, sizeof(self->orders_read), 0);
                sqe->flags |= loop->file_flags;
                r = await_operation(loop, sqe);
        }
        if (!self->ends)
                *self->failure = r;
        self->runs = false;
        loop->residents--;
}

/* ---- its life ---- */

unsigned queue_action_stacks(const struct target_device *device, unsigned index)
{
        return acts(device, index);
}

int queue_action_open(struct queue_action *self, struct io_loop *loop, struct action_port *port,
        struct throttle *throttle, uint32_t max_io_size, int *failure)
{
        const struct target *target = loop->queue.device->target;
        unsigned place = io_loop_action_place(loop);

        assert(target->act || target->desc->verb_count == 0);
        if (!port || !acts(loop->queue.device, loop->queue.index))
                return 0;
        *self = (struct queue_action){.action.queue = &loop->queue,
                .port = port,
                .throttle = throttle,
                .max_io_size = max_io_size,
                .failure = failure,
                .orders = port->orders};
        if (!(loop->file_flags & IOSQE_FIXED_FILE))
                return 0;
        self->orders = (int)place;
        return io_ring_set_file(&loop->ring, place, port->orders);
}

int queue_action_begin(struct queue_action *self)
{
        struct io_loop *loop;
        struct co *co;
        int r;

        if (!self->port)
                return 0;
        loop = loop_of(self);
        r = co_prepare(&loop->coroutines, action_co, self, &co);
        if (r < 0)
                return r;
        loop->residents++;
        self->runs = true;
        co_list_append(&loop->ready, co);
        io_loop_run_ready(loop);
        return 0;
}

int queue_action_stop(struct queue_action *self, int (*turn)(struct io_loop *loop, bool wait))
{
        int r = 0;

        if (!self->runs)
                return 0;
        self->ends = true;
        action_port_wake(self->port);
        while (r >= 0 && self->runs)
                r = turn(loop_of(self), true);
        return r;
}

bool queue_action_is_late(struct queue_action *self)
{
        bool is_late = queue_action_reads(self) && self->reads == self->reads_seen;

        self->reads_seen = self->reads;
        return is_late;
}
