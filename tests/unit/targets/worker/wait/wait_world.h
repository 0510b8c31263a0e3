/* SPDX-License-Identifier: MIT */
/* A queue without a driver, of a target that a test makes up. */
#pragma once

#include "targets/worker/wait/wait_room.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"

#include <stdatomic.h>

enum { DEPTH = 8 };

static struct target_desc desc;
static struct target target;
static struct target_device device;
static struct io_loop loop;
static struct work_pool *pool;
static enum io_loop_holder holder;
static int failure;
static atomic_bool world_serves; /* from the first request to the last */

/* Open the queue of a target with `desc` and `target` as they are, and these files. */
static inline bool world_open(const int *files, unsigned count)
{
        unsigned threads = desc.waits.work_threads;

        target.desc = &desc;
        device = (struct target_device){.target = &target, .file_count = count, .queue_depth = DEPTH};
        for (unsigned i = 0; i < count; i++)
                device.files[i] = files[i];
        pool = NULL;
        failure = 0;
        return (threads == 0 || CHECK_INT(work_pool_new(threads, 1, NULL, NULL, &pool), 0))
               && CHECK_INT(io_loop_init(&loop, &device, 0, DEPTH,
                                    DEPTH + wait_room_stacks(&device, 0, DEPTH), -1, holder),
                       0)
               && CHECK_INT(wait_room_open(&loop, DEPTH, pool, &failure), 0);
}

/* Serve with it. */
static inline bool world_run(void)
{
        bool good = CHECK_INT(io_loop_start(&loop), 0) && CHECK_INT(wait_room_run(&loop), 0);

        atomic_store(&world_serves, good);
        return good;
}

static inline int world_turn(struct io_loop *self, bool wait)
{
        return wait ? loop_turn(self) : io_loop_submit(self, false);
}

/* Close it when its requests are done. */
static inline void world_close(void)
{
        CHECK_INT(loop_drive(&loop), 0);
        CHECK_INT(wait_room_stop(&loop, world_turn), 0);
        atomic_store(&world_serves, false);
        CHECK_INT(loop.residents, 0);
        CHECK_INT(loop.coroutines.busy, 0);
        wait_room_close(&loop);
        io_loop_destroy(&loop);
        pool = work_pool_free(pool);
}

static inline void start(void (*entry)(void *argument), void *argument)
{
        CHECK_INT(co_start(&loop.coroutines, entry, argument), 0);
}
