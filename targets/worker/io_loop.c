/* One thread's world: an io_uring, its coroutines, and those of them that may go on. */
#include "targets/worker/io_loop.h"

#include <time.h>

#ifndef IORING_FEAT_NO_IOWAIT
#define IORING_FEAT_NO_IOWAIT (1U << 17) /* Linux 6.15 */
#endif

/* From the fastest way to run a ring to the plainest: what a kernel does not know is EINVAL.
 *
 * DEFER_TASKRUN would be there since 6.1, but on 6.12 the kernel sometimes crashes (a null pointer in
 * io_fallback_tw()) when a process is killed that has direct I/O in flight on such a ring: 4 times in some
 * 300 deaths, and never in as many without it. A worker must be safe to kill, so it is for kernels with a
 * feature that came later only. */
static const struct {
        unsigned flags, features;
} ring_modes[] = {
        {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_COOP_TASKRUN,
         IORING_FEAT_NO_IOWAIT                                                                 },
        {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN,                              0},
        {IORING_SETUP_COOP_TASKRUN,                                                           0},
        {0,                                                                                   0},
};

/* -EINVAL: not in this way on this kernel. */
static int ring_init_as(
        struct io_uring *ring, unsigned submissions, unsigned completions, unsigned flags, unsigned features)
{
        struct io_uring_params params = {
                .flags = flags | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL,
                .cq_entries = completions,
        };
        int r = io_uring_queue_init_params(submissions, ring, &params);

        if (r < 0 || (params.features & features) == features)
                return r;
        io_uring_queue_exit(ring);
        return -EINVAL;
}

static int ring_init(struct io_uring *ring, unsigned submissions, unsigned completions)
{
        int r = -EINVAL;

        for (size_t i = 0; r == -EINVAL && i < ARRAY_SIZE(ring_modes); i++)
                r = ring_init_as(ring, submissions, completions, ring_modes[i].flags, ring_modes[i].features);
        if (r < 0)
                return r;
        /* Saves a look-up of the ring's descriptor in every system call; older kernels do without. */
        (void)io_uring_register_ring_fd(ring);
        return 0;
}

static int register_files(struct io_loop *loop, const struct target_device *device, int command_fd)
{
        int files[IO_LOOP_FIRST_FILE + TARGET_FILES_MAX] = {[IO_LOOP_COMMAND_FILE] = command_fd};
        unsigned count = IO_LOOP_FIRST_FILE;

        assert(device->file_count <= TARGET_FILES_MAX);
        for (unsigned i = 0; i < device->file_count; i++)
                files[count++] = device->files[i];
        return io_uring_register_files(&loop->ring, files, count);
}

static int loop_init(struct io_loop *loop, const struct target_device *device, unsigned depth,
        unsigned coroutines, int command_fd)
{
        int r;

        /* In one round every request adds at most one entry: its next backend operation, or its commit. What
         * can complete at one time: an operation and a command for each, or with batches an arrival and a
         * commit. */
        r = ring_init(&loop->ring, depth, 4 * depth);
        if (r < 0)
                return r;
        loop->ring_open = true;
        r = register_files(loop, device, command_fd);
        if (r < 0)
                return r;
        return coroutines > 0 ? co_pool_init(&loop->coroutines, CO_STACK_SIZE, coroutines) : 0;
}

int io_loop_init(struct io_loop *loop, struct target_device *device, unsigned index, unsigned depth,
        unsigned coroutines, int command_fd)
{
        int r;

        *loop = (struct io_loop){
                .queue = {.device = device, .index = index}
        };
        r = loop_init(loop, device, depth, coroutines, command_fd);
        if (r < 0)
                io_loop_destroy(loop);
        return r;
}

void io_loop_destroy(struct io_loop *loop)
{
        co_pool_destroy(&loop->coroutines);
        if (loop->ring_open)
                io_uring_queue_exit(&loop->ring);
        loop->ring_open = false;
}

/* What a submission answered, for the owner of the loop. */
static int submitted(struct io_loop *loop, int r)
{
        loop->instant = 0;
        co_list_splice(&loop->ready, &loop->starved);
        /* EAGAIN and EBUSY: short of memory, or of room for completions. Both pass once completions are
         * taken. */
        if (r < 0 && r != -EINTR && r != -EAGAIN && r != -EBUSY && r != -ETIME)
                return r;
        return 0;
}

int io_loop_submit(struct io_loop *loop, bool wait)
{
        return submitted(loop, wait ? io_uring_submit_and_wait(&loop->ring, 1 + loop->instant)
                                    : io_uring_submit_and_get_events(&loop->ring));
}

static uint64_t monotonic(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int io_loop_submit_for(struct io_loop *loop, uint64_t poll, uint64_t timeout)
{
        uint64_t begin = monotonic(), passed;
        struct io_uring_cqe *cqe;
        int r;

        do {
                r = io_uring_submit_and_get_events(&loop->ring);
                passed = monotonic() - begin;
                if (r < 0 || io_uring_cq_ready(&loop->ring) > 0 || passed >= timeout)
                        return submitted(loop, r);
        } while (passed < poll);
        if (timeout == UINT64_MAX)
                return io_loop_submit(loop, true);
        timeout -= passed;
        return submitted(loop, io_uring_submit_and_wait_timeout(&loop->ring, &cqe, 1,
                                       &(struct __kernel_timespec){.tv_sec = (int64_t)(timeout / 1000000000),
                                               .tv_nsec = (long long)(timeout % 1000000000)},
                                       NULL));
}

struct io_uring_sqe *io_loop_sqe(struct io_loop *loop)
{
        struct io_uring_sqe *sqe = io_uring_get_sqe(&loop->ring);

        if (__builtin_expect(!sqe, 0)) {
                (void)io_uring_submit(&loop->ring);
                loop->instant = 0;
                sqe = io_uring_get_sqe(&loop->ring);
        }
        return sqe;
}

void io_loop_run_ready(struct io_loop *loop)
{
        struct co *co;

        while ((co = co_list_take(&loop->ready)))
                co_resume(co);
}
