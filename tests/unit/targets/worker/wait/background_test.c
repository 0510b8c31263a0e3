/* SPDX-License-Identifier: MIT */
/* Coroutines of the background: each is asked to stop in its turn, out of whatever it waits for, and has
 * ended before the queue closes. */
#include "tests/unit/targets/worker/wait/wait_world.h"

#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

static char events[1024];
static int ends[2];
static struct co_mutex mutex;
static struct co_condition condition;
static atomic_bool gate, at_work;

static void note(char what, unsigned number)
{
        size_t used = strlen(events);

        snprintf(events + used, sizeof(events) - used, "%c%u ", what, number);
}

static int nothing_run(void *argument)
{
        (void)argument;
        return 1;
}

static int gate_run(void *argument)
{
        (void)argument;
        atomic_store(&at_work, true);
        while (!atomic_load(&gate))
                sched_yield();
        return 7;
}

static int wait_fd(void)
{
        return await_fd(&loop.queue, 0, POLLIN);
}

static int wait_time(void)
{
        return await_timeout(&loop.queue, UINT64_C(3600000000000));
}

static int wait_recv(void)
{
        char byte;

        return await_recv(&loop.queue, 0, &byte, 1);
}

static int wait_recv_some(void)
{
        char bytes[2];

        return await_recv_some(&loop.queue, 0, bytes, sizeof(bytes));
}

/* More than the socket holds, and no process reads it. */
static int wait_send(void)
{
        static const char bytes[4 << 20];

        return await_send(&loop.queue, 0, bytes, sizeof(bytes));
}

static int wait_condition(void)
{
        int r;

        await_mutex(&loop.queue, &mutex);
        r = await_condition(&loop.queue, &condition, &mutex);
        CHECK(mutex.held);
        co_mutex_unlock(&mutex);
        return r;
}

static int wait_time_run(void *argument)
{
        (void)argument;
        return wait_time();
}

static int wait_fd_run(void *argument)
{
        (void)argument;
        return wait_fd();
}

static int wait_all(void)
{
        struct target_child children[] = {
                {.run = wait_time_run}, {.run = wait_fd_run}, {.run = wait_time_run}};
        int r = await_all(&loop.queue, children, 3);

        for (unsigned i = 0; i < 3; i++)
                CHECK_INT(children[i].result, -ECANCELED);
        return r;
}

/* In the line behind work that does not end: see test_work_is_waited_for(). */
static int wait_work(void)
{
        return await_work(&loop.queue, nothing_run, NULL);
}

static int (*const waits[])(void) = {
        wait_fd, wait_time, wait_recv, wait_recv_some, wait_send, wait_condition, wait_all};

static void background_co(struct target_queue *queue, unsigned number)
{
        CHECK(!target_queue_stopping(queue));
        note('+', number);
        CHECK_INT(waits[number](), -ECANCELED);
        CHECK(target_queue_stopping(queue));
        for (unsigned i = 0; i < ARRAY_SIZE(waits); i++) /* and nothing begins any more */
                CHECK_INT(waits[i](), -ECANCELED);
        CHECK_INT(wait_work(), -ECANCELED);
        note('-', number);
}

static void device_background_co(struct target_queue *queue, unsigned number)
{
        CHECK_INT(queue->index, 0);
        note('d', number);
        CHECK_INT(await_timeout(queue, UINT64_C(3600000000000)), -ECANCELED);
        note('D', number);
}

static bool begin(void)
{
        events[0] = '\0';
        mutex = (struct co_mutex){};
        condition = (struct co_condition){};
        return CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0) && world_open(ends, 2)
               && world_run();
}

static void end(void)
{
        world_close();
        close_fd(ends[0]);
        close_fd(ends[1]);
}

static void declare(unsigned background, unsigned of_device)
{
        desc = (struct target_desc){
                .name = "test",
                .needs = TARGET_NEEDS_NETWORK,
                .waits = {.children = 2,
                          .background = background,
                          .device_background = of_device,
                          .work_threads = 1}
        };
        target = (struct target){.background = background_co, .device_background = device_background_co};
}

static void test_order(void)
{
        declare(ARRAY_SIZE(waits), 2);
        if (!begin())
                return;
        CHECK_STR(events, "d0 d1 +0 +1 +2 +3 +4 +5 +6 ");
        end();
        CHECK_STR(events, "d0 d1 +0 +1 +2 +3 +4 +5 +6 -6 -5 -4 -3 -2 -1 -0 D1 D0 ");
}

/* Another queue has none of the device. */
static void test_the_device_has_one_queue_for_it(void)
{
        declare(1, 2);
        target.desc = &desc;
        device = (struct target_device){.target = &target};
        CHECK_INT(wait_room_stacks(&device, 1, DEPTH), 2 * (DEPTH + 1) + 1 + 1);
        CHECK_INT(wait_room_stacks(&device, 0, DEPTH), 2 * (DEPTH + 3) + 3 + 1);
        CHECK_INT(wait_room_stacks(&device, 0, 128), TARGET_QUEUE_CHILDREN_MAX + 3 + 1);
}

/* Requests go on while the background waits, and after it: it is asked only when they have ended. */
static void request_co(void *argument)
{
        char byte;

        CHECK_INT(await_timeout(&loop.queue, 20000000), 0);
        CHECK_INT(await_send(&loop.queue, 1, "x", 1), 1);
        CHECK_INT(await_recv(&loop.queue, 0, &byte, 1), 1);
        CHECK_INT(await_work(&loop.queue, nothing_run, NULL), 1);
        *(bool *)argument = true;
}

static void test_requests_are_not_asked(void)
{
        bool done = false;

        declare(0, 2);
        if (!begin())
                return;
        start(request_co, &done);
        end();
        CHECK(done);
        CHECK_STR(events, "d0 d1 D1 D0 ");
}

/* ---- locks ---- */

static struct co_rwlock rwlock, read_lock;
static struct co_range_lock ranges;

static void lock_mutex(struct target_queue *queue)
{
        await_mutex(queue, &mutex);
        co_mutex_unlock(&mutex);
}

static void lock_to_write(struct target_queue *queue)
{
        await_rwlock_write(queue, &rwlock);
        co_rwlock_unlock_write(&rwlock);
}

static void lock_to_read(struct target_queue *queue)
{
        await_rwlock_read(queue, &read_lock);
        co_rwlock_unlock_read(&read_lock);
}

static void lock_range(struct target_queue *queue)
{
        struct co_range range;

        await_range(queue, &ranges, &range, 0, 1, CO_RANGE_SHARED);
        co_range_unlock(&ranges, &range);
}

static void (*const locks[])(struct target_queue *queue) = {
        lock_mutex, lock_to_write, lock_to_read, lock_range};
static size_t which; /* of locks[] */

/* Has all locks, until its work ends. */
static void hold_all(struct target_queue *queue)
{
        struct co_range range;

        await_mutex(queue, &mutex);
        await_rwlock_read(queue, &rwlock);
        await_rwlock_write(queue, &read_lock);
        await_range(queue, &ranges, &range, 0, 1, CO_RANGE_EXCLUSIVE);
        CHECK_INT(await_work(queue, gate_run, NULL), 7);
        co_range_unlock(&ranges, &range);
        co_rwlock_unlock_write(&read_lock);
        co_rwlock_unlock_read(&rwlock);
        co_mutex_unlock(&mutex);
}

/* The second is in the line for a lock when it is asked to stop: it gets the lock, and waits for nothing else. */
static void locking_co(struct target_queue *queue, unsigned number)
{
        note('+', number);
        if (number == 0) {
                hold_all(queue);
        } else {
                locks[which](queue);
                CHECK(target_queue_stopping(queue));
                CHECK_INT(await_timeout(queue, 0), -ECANCELED);
        }
        note('-', number);
}

/* The work of the first ends once the second was asked to stop. */
static int open_and_turn(struct io_loop *self, bool wait)
{
        atomic_store(&gate, true);
        return world_turn(self, wait);
}

static void test_a_lock_is_not_cancelled(void)
{
        declare(2, 0);
        target.background = locking_co;
        rwlock = read_lock = (struct co_rwlock){};
        ranges = (struct co_range_lock){};
        atomic_store(&gate, false);
        if (!begin())
                return;
        CHECK_STR(events, "+0 +1 ");
        CHECK_INT(wait_room_stop(&loop, open_and_turn), 0);
        CHECK_STR(events, "+0 +1 -0 -1 ");
        end();
}

/* ---- work ---- */

static void working_co(struct target_queue *queue, unsigned number)
{
        note('+', number);
        if (number == 0)
                CHECK_INT(await_work(queue, gate_run, NULL), 7); /* has begun: it is waited for */
        else
                CHECK_INT(await_work(queue, nothing_run, NULL), -ECANCELED);
        if (number == 1) /* the last that waited in the line: now the one that works may end */
                atomic_store(&gate, true);
        note('-', number);
}

static void test_work_is_waited_for(void)
{
        declare(3, 0);
        target.background = working_co;
        atomic_store(&gate, false);
        atomic_store(&at_work, false);
        if (!begin())
                return;
        while (!atomic_load(&at_work))
                sched_yield();
        end();
        CHECK_STR(events, "+0 +1 +2 -2 -1 -0 ");
}

/* ---- the ends of the world ---- */

/* What was signalled in the same round is not cancelled: a signal is not lost. */
static void signalled_co(struct target_queue *queue, unsigned number)
{
        if (number == 0) {
                CHECK_INT(await_condition(queue, &condition, NULL), 0);
                note('s', number);
                return;
        }
        CHECK_INT(await_timeout(queue, UINT64_C(3600000000000)), -ECANCELED);
        co_condition_signal(&condition);
        note('-', number);
}

static void test_a_signal_at_the_end(void)
{
        declare(2, 0);
        target.background = signalled_co;
        if (!begin())
                return;
        end();
        CHECK_STR(events, "-1 s0 ");
}

static void at_once_co(struct target_queue *queue, unsigned number)
{
        (void)queue;
        note('!', number);
}

static void test_a_background_that_ends_at_once_runs_in_each_queue(void)
{
        declare(3, 0);
        target.background = at_once_co;
        if (!begin())
                return;
        CHECK_INT(loop.residents, 1); /* the coroutine for what threads have done */
        end();
        CHECK_STR(events, "!0 !1 !2 ");
}

/* More to cancel than the submission queue takes at one time. */
enum { WIDE = 14 };

static int many_run(void *argument)
{
        struct target_child children[WIDE];

        (void)argument;
        for (unsigned i = 0; i < WIDE; i++)
                children[i] = (struct target_child){.run = wait_time_run};
        return await_all(&loop.queue, children, WIDE);
}

static void many_co(struct target_queue *queue, unsigned number)
{
        struct target_child children[WIDE];

        for (unsigned i = 0; i < WIDE; i++)
                children[i] = (struct target_child){.run = many_run};
        CHECK_INT(await_all(queue, children, WIDE), -ECANCELED);
        note('-', number);
}

static void test_many_to_cancel(void)
{
        declare(1, 0);
        desc.waits.children = TARGET_CHILDREN_MAX;
        target.background = many_co;
        if (!begin())
                return;
        end();
        CHECK_STR(events, "-0 ");
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        for (holder = IO_LOOP_HELD_BY_RING; holder <= IO_LOOP_HELD_BY_PROCESS; holder++) {
                test_order();
                test_requests_are_not_asked();
                for (which = 0; which < ARRAY_SIZE(locks); which++)
                        test_a_lock_is_not_cancelled();
                test_work_is_waited_for();
                test_a_signal_at_the_end();
                test_a_background_that_ends_at_once_runs_in_each_queue();
                test_many_to_cancel();
        }
        test_the_device_has_one_queue_for_it();
        return check_report();
}
