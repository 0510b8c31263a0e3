/* SPDX-License-Identifier: MIT */
/* One thread's world: an io_uring, its coroutines, and those of them that may go on. */
#include "targets/worker/io/io_loop.h"

#include "ublkd/base/clock.h"

#include <time.h>

enum { NUDGES_MAX = 16 };

static const struct target_waits *waits_of(const struct io_loop *loop)
{
        static const struct target_waits none;
        const struct target *target = loop->queue.device->target;

        return target ? &target->desc->waits : &none;
}

static int register_files(struct io_loop *loop, unsigned count)
{
        const struct target_waits *waits = waits_of(loop);
        const struct target *target = loop->queue.device->target;
        unsigned all = count + waits->files + (waits->work_threads > 0) + (target && target->act) + 1;
        int table[IO_LOOP_FILES + TARGET_QUEUE_FILES_MAX + 3];

        assert(waits->files <= TARGET_QUEUE_FILES_MAX);
        for (unsigned i = 0; i < all; i++)
                table[i] = i < count ? loop->files[i] : -1;
        return io_uring_register_files(&loop->ring, table, all);
}

static int take_files(struct io_loop *loop, int command_fd, enum io_loop_holder holder)
{
        const struct target_device *device = loop->queue.device;
        unsigned count = IO_LOOP_FIRST_FILE;
        int r;

        assert(device->file_count <= TARGET_FILES_MAX);
        loop->files[IO_LOOP_COMMAND_FILE] = command_fd;
        for (unsigned i = 0; i < device->file_count; i++)
                loop->files[count++] = device->files[i];
        if (holder == IO_LOOP_HELD_BY_PROCESS)
                return 0;
        r = register_files(loop, count);
        for (unsigned i = 0; i < count; i++)
                loop->files[i] = (int)i;
        loop->file_flags = IOSQE_FIXED_FILE;
        return r;
}

static int loop_init(
        struct io_loop *loop, unsigned depth, unsigned coroutines, int command_fd, enum io_loop_holder holder)
{
        int r;

        /* In one round every request adds at most one entry: its next backend operation, or its commit. What
         * can complete at one time: an operation and a command for each, or with batches an arrival and a
         * commit; and one for each that a request fans out to. */
        r = io_ring_open(&loop->ring, depth, (4 + waits_of(loop)->children) * depth);
        if (r < 0)
                return r;
        loop->ring_open = true;
        r = take_files(loop, command_fd, holder);
        if (r < 0)
                return r;
        return coroutines > 0 ? co_pool_init(&loop->coroutines, CO_STACK_SIZE, coroutines) : 0;
}

int io_loop_init(struct io_loop *loop, struct target_device *device, unsigned index, unsigned depth,
        unsigned coroutines, int command_fd, enum io_loop_holder holder)
{
        int r;

        *loop = (struct io_loop){
                .queue = {.device = device, .index = index}
        };
        loop->queue.of_disk = &loop->queue;
        r = loop_init(loop, depth, coroutines, command_fd, holder);
        if (r < 0)
                io_loop_destroy(loop);
        return r;
}

/* What the target declares, for the ring. */
static unsigned extras_of(const struct io_loop *loop)
{
        const struct target_waits *waits = waits_of(loop);
        const struct target *target = loop->queue.device->target;
        unsigned needs = target ? target->desc->needs : 0;
        unsigned extras = 0;

        if (needs & (TARGET_NEEDS_POLL | TARGET_NEEDS_NETWORK))
                extras |= IO_RING_POLLS | IO_RING_CANCELS;
        if (needs & TARGET_NEEDS_NETWORK)
                extras |= IO_RING_SENDS | (waits->files > 0 ? IO_RING_SETS_FILES : 0);
        if (waits->background + waits->device_background > 0)
                extras |= IO_RING_CANCELS;
        return extras;
}

int io_loop_start(struct io_loop *loop)
{
        return io_ring_start(&loop->ring, loop->file_flags & IOSQE_FIXED_FILE, extras_of(loop));
}

void io_loop_destroy(struct io_loop *loop)
{
        co_pool_destroy(&loop->coroutines);
        if (loop->ring_open)
                io_ring_close(&loop->ring);
        loop->ring_open = false;
}

/* What a submission answered, for the owner of the loop. */
static int submitted(struct io_loop *loop, int r)
{
        loop->inline_cqes = 0;
        co_list_splice(&loop->ready, &loop->starved);
        /* EAGAIN and EBUSY: short of memory, or of room for completions. Both pass once completions are
         * taken. */
        if (r < 0 && r != -EINTR && r != -EAGAIN && r != -EBUSY && r != -ETIME)
                return r;
        return 0;
}

int io_loop_submit(struct io_loop *loop, bool wait)
{
        /* Starved coroutines can run now. Do not block: other requests may depend on them. */
        wait = wait && !loop->starved.first;
        return submitted(loop, io_ring_submit_and_wait(&loop->ring, wait ? 1 + loop->inline_cqes : 0, NULL));
}

int io_loop_submit_for(struct io_loop *loop, uint64_t poll, uint64_t timeout)
{
        uint64_t begin = clock_nsec(CLOCK_MONOTONIC), passed;
        int r;

        do {
                r = io_ring_submit_and_wait(&loop->ring, 0, NULL);
                passed = clock_nsec(CLOCK_MONOTONIC) - begin;
                if (r < 0 || io_uring_cq_ready(&loop->ring) > 0 || passed >= timeout)
                        return submitted(loop, r);
        } while (passed < poll);
        if (timeout == UINT64_MAX)
                return io_loop_submit(loop, true);
        timeout -= passed;
        return submitted(loop, io_ring_submit_and_wait(&loop->ring, 1,
                                       &(struct __kernel_timespec){.tv_sec = (int64_t)(timeout / 1000000000),
                                               .tv_nsec = (long long)(timeout % 1000000000)}));
}

struct io_uring_sqe *io_loop_sqe(struct io_loop *loop)
{
        struct io_uring_sqe *sqe = io_ring_sqe(&loop->ring);

        if (__builtin_expect(!sqe, 0)) {
                (void)io_ring_submit(&loop->ring);
                loop->inline_cqes = 0;
                sqe = io_ring_sqe(&loop->ring);
        }
        if (sqe)
                io_ring_clear(sqe);
        return sqe;
}

void io_loop_run_ready(struct io_loop *loop)
{
        struct co *co;

        while ((co = co_list_take(&loop->ready)))
                co_resume(co);
}

bool io_loop_nudge(struct io_loop *loop)
{
        struct io_uring_sqe *sqe = loop->nudges < NUDGES_MAX ? io_loop_sqe(loop) : NULL;

        if (!sqe)
                return false;
        io_uring_prep_nop(sqe);
        io_loop_set_file(loop, sqe, IO_LOOP_FIRST_FILE); /* the ring may take no entry without a file */
        sqe->flags |= IOSQE_ASYNC;
        io_uring_sqe_set_data64(sqe, USER_DATA_NUDGE);
        loop->nudges++;
        return true;
}
