/* SPDX-License-Identifier: MIT */
/* A target whose requests wait in every way that there is. The linker takes it in the place of the null
 * target, whose name and options it has. A read of block FIRST + N waits as the N-th function of `waits`
 * does: in the first worker of a disk for what does not come, in each later one for what comes. Its data
 * begins with N + 1 then. Reads of other blocks wait for nothing, and their data begins with the number of
 * requests that wait. */
#include "targets/null/null_desc.h"
#include "targets/null/null.h"
#include "targets/null/null_options.h"
#include "targets/target_wait.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>

/* FIRST: where no reader of a partition table looks. tests/kernel/test_waits.py has it, too. */
enum { BLOCK = 4096, FIRST = 8192, MANY = 4, LONG = 1 << 20 };
enum { FILE_NEWS, FILE_READS, FILE_WRITES, FILE_PEER, _FILES };

#define HOUR UINT64_C(3600000000000)
#define SOON UINT64_C(1000000)

const struct target_desc null_desc = {
        .name = "null",
        .summary = "Waits in every way",
        .flags = TARGET_REISSUE_SAFE | TARGET_ONE_QUEUE,
        .needs = TARGET_NEEDS_NETWORK,
        .waits = {.children = MANY - 1,
                  .background = 2,
                  .device_background = 1,
                  .files = 1,
                  .work_threads = 1},
        .size_required = true,
        .options = &null_options_table,
};

struct waiting_queue {
        bool patient; /* this worker waits for what does not come */
        unsigned waiting;
        struct co_mutex mutex;
        struct co_rwlock rwlock;
        struct co_range_lock ranges;
        struct co_condition condition, never;
        char memory[LONG];
};

static struct waiting_queue *state_of(const struct target_queue *queue)
{
        return queue->state;
}

static uint64_t how_long(const struct target_queue *queue)
{
        return state_of(queue)->patient ? HOUR : SOON;
}

/* ---- each way ---- */

static int wait_mutex(struct target_queue *queue)
{
        await_mutex(queue, &state_of(queue)->mutex);
        co_mutex_unlock(&state_of(queue)->mutex);
        return 0;
}

static int wait_rwlock(struct target_queue *queue)
{
        await_rwlock_write(queue, &state_of(queue)->rwlock);
        co_rwlock_unlock_write(&state_of(queue)->rwlock);
        return 0;
}

static int wait_range(struct target_queue *queue)
{
        struct co_range range;

        await_range(queue, &state_of(queue)->ranges, &range, 50, 100, CO_RANGE_EXCLUSIVE);
        co_range_unlock(&state_of(queue)->ranges, &range);
        return 0;
}

static int wait_condition(struct target_queue *queue)
{
        struct waiting_queue *state = state_of(queue);

        return await_condition(queue, state->patient ? &state->never : &state->condition, NULL);
}

static int child_run(void *argument)
{
        return await_timeout(argument, how_long(argument));
}

static int wait_all(struct target_queue *queue)
{
        struct target_child children[MANY];

        for (unsigned i = 0; i < MANY; i++)
                children[i] = (struct target_child){.run = child_run, .argument = queue};
        return await_all(queue, children, MANY);
}

static int wait_fd(struct target_queue *queue)
{
        int r = await_fd(queue, FILE_NEWS, POLLIN);

        return r == POLLIN ? 0 : r;
}

static int wait_timeout(struct target_queue *queue)
{
        return await_timeout(queue, how_long(queue));
}

static int wait_recv(struct target_queue *queue)
{
        char byte;
        int r = await_recv(queue, FILE_READS, &byte, 1);

        return r == 1 ? 0 : r;
}

/* More than the socket holds, to another that no process reads from. */
static int wait_send(struct target_queue *queue)
{
        uint32_t length = state_of(queue)->patient ? LONG : 1;
        int r = await_send(queue, FILE_WRITES, state_of(queue)->memory, length);

        return r == (int)length ? 0 : r;
}

static int work_run(void *argument)
{
        uint64_t time = how_long(argument);
        const struct timespec timespec = {
                .tv_sec = (time_t)(time / 1000000000), .tv_nsec = (long)(time % 1000000000)};

        return clock_nanosleep(CLOCK_MONOTONIC, 0, &timespec, NULL);
}

static int wait_work(struct target_queue *queue)
{
        return await_work(queue, work_run, queue);
}

/* tests/kernel/test_waits.py has the number of them. Of the last two one works, and one is in the line. */
static int (*const waits[])(struct target_queue *) = {wait_mutex, wait_rwlock, wait_range, wait_condition,
        wait_all, wait_fd, wait_timeout, wait_recv, wait_send, wait_work, wait_work};

/* ---- the background ---- */

/* The first worker holds all locks for a long time; until it is asked to stop. */
static void holding_co(struct target_queue *queue)
{
        struct waiting_queue *state = state_of(queue);
        struct co_range range;

        await_mutex(queue, &state->mutex);
        await_rwlock_read(queue, &state->rwlock);
        await_range(queue, &state->ranges, &range, 0, 100, CO_RANGE_SHARED);
        (void)await_timeout(queue, how_long(queue));
        co_range_unlock(&state->ranges, &range);
        co_rwlock_unlock_read(&state->rwlock);
        co_mutex_unlock(&state->mutex);
}

static void waiting_background(struct target_queue *queue, unsigned number)
{
        if (number == 0)
                holding_co(queue);
        while (await_timeout(queue, SOON) >= 0)
                co_condition_broadcast(&state_of(queue)->condition);
}

static void waiting_device_background(struct target_queue *queue, unsigned number)
{
        char byte;

        (void)number;
        (void)await_recv(queue, TARGET_QUEUE_FILE, &byte, 1);
}

/* ---- the target ---- */

static int waiting_open(
        struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        static const char bytes[64];
        int pair[2], other[2];
        bool recovers = device->store.served;

        (void)problems;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, other) < 0)
                return -errno;
        device->files[FILE_NEWS] = eventfd(recovers, EFD_CLOEXEC);
        device->files[FILE_READS] = pair[0];
        device->files[FILE_PEER] = pair[1];
        device->files[FILE_WRITES] = other[0]; /* other[1] stays open, and is never read */
        device->file_count = _FILES;
        if (device->files[FILE_NEWS] < 0
                || (recovers && write(pair[1], bytes, sizeof(bytes)) != sizeof(bytes)))
                return -errno;
        *ret = (struct target_geometry){.logical_block_size = BLOCK};
        return 0;
}

static int waiting_start_queue(struct target_queue *queue)
{
        int pair[2];

        state_of(queue)->patient = !queue->device->store.served;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        return target_queue_set_file(queue, TARGET_QUEUE_FILE, pair[0]);
}

static int waiting_read(struct target_io *io)
{
        struct waiting_queue *state = state_of(io->queue);
        uint64_t block = io->offset / BLOCK;
        uint32_t answer = state->waiting;
        int r = 0;

        if (block >= FIRST && block - FIRST < ARRAY_SIZE(waits)) {
                answer = (uint32_t)(block - FIRST) + 1;
                state->waiting++;
                r = waits[block - FIRST](io->queue);
                state->waiting--;
        }
        if (r < 0)
                return r;
        memset(io->data, 0, io->length);
        memcpy(io->data, &answer, sizeof(answer));
        return (int)io->length;
}

const struct target null_target = {
        .desc = &null_desc,
        .queue_size = sizeof(struct waiting_queue),
        .open = waiting_open,
        .start_queue = waiting_start_queue,
        .background = waiting_background,
        .device_background = waiting_device_background,
        .read = waiting_read,
};
