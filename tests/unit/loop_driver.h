/* SPDX-License-Identifier: MIT */
/* Turns an io_loop by hand, for tests that have no ublk queue around it. */
#pragma once

#include "targets/worker/io/io_loop.h"

#include <errno.h>

/* Whether this machine lets us have an io_uring; else the test is to be skipped. */
static inline bool io_uring_is_there(void)
{
        struct io_uring ring;
        int r = io_ring_open(&ring, 2, 4);

        if (r == 0)
                io_ring_close(&ring);
        return r != -ENOSYS && r != -EPERM && r != -EACCES;
}

/* What a completion of USER_DATA_PLAIN leads to. */
struct driver_plain {
        void (*moved)(struct driver_plain *plain, int result);
};

static inline void driver_plain_moved(uint64_t user_data, int result)
{
        struct driver_plain *plain = user_data_of_plain(user_data);

        plain->moved(plain, result);
}

/* Wait for completions, and take them. 0, or the -errno that broke the ring. */
static inline int loop_turn(struct io_loop *loop)
{
        struct io_uring_cqe *cqe;
        unsigned head, count = 0;
        int r = io_loop_submit(loop, true);

        if (r < 0)
                return r;
        io_uring_for_each_cqe(&loop->ring, head, cqe)
        {
                if (user_data_kind(cqe->user_data) == USER_DATA_AWAIT)
                        io_loop_wake(loop, cqe->user_data, cqe->res);
                else if (user_data_kind(cqe->user_data) == USER_DATA_PLAIN)
                        driver_plain_moved(cqe->user_data, cqe->res);
                else if (cqe->user_data == USER_DATA_NUDGE)
                        io_loop_nudged(loop);
                count++;
        }
        io_uring_cq_advance(&loop->ring, count);
        io_loop_run_ready(loop);
        return 0;
}

/* Until every coroutine has ended but those of the background. 0, or the -errno that broke the ring. */
static inline int loop_drive(struct io_loop *loop)
{
        int r = 0;

        io_loop_run_ready(loop); /* what those that were started have woken */
        while (r >= 0 && loop->coroutines.busy > loop->residents)
                r = loop_turn(loop);
        return r;
}
