/* SPDX-License-Identifier: MIT */
/* Reserves what a target declares, and runs its coroutines of the background.
 *
 * Stacks are one pool for all coroutines of a queue. Requests are no more than its depth, the children that
 * run at one time no more than `children_free` was at first, so there is always a stack for a request that
 * arrives. */
#include "targets/worker/wait/wait_room_internal.h"
#include "ublkd/kernel/ublk_uapi.h"

#include <stdlib.h>

_Static_assert(
        UBLK_MAX_QUEUE_DEPTH + TARGET_QUEUE_CHILDREN_MAX + 2 * TARGET_BACKGROUND_MAX + 2 <= CO_COUNT_MAX,
        "each queue can have the stacks that a target may declare");

static const struct target_waits *waits_of(const struct target_device *device)
{
        return &device->target->desc->waits;
}

static bool reserves_any(const struct target_waits *waits)
{
        return waits->children + waits->watched + waits->background + waits->device_background + waits->files
                       + waits->work_threads
               > 0;
}

static bool declares_any(const struct target_desc *desc)
{
        return (desc->needs & (TARGET_NEEDS_NETWORK | TARGET_NEEDS_POLL)) != 0 || reserves_any(&desc->waits);
}

static unsigned residents(const struct target_waits *waits, unsigned index)
{
        return waits->background + (index == 0 ? waits->device_background : 0);
}

/* Few requests fan out at one time. A stack that was used once stays mapped, and a tree may have many leaves. */
static unsigned children(const struct target_waits *waits, unsigned index, unsigned depth)
{
        unsigned all = waits->children * (depth + residents(waits, index));

        return all < TARGET_QUEUE_CHILDREN_MAX ? all : TARGET_QUEUE_CHILDREN_MAX;
}

unsigned wait_room_stacks(const struct target_device *device, unsigned index, unsigned depth)
{
        const struct target_waits *waits = waits_of(device);

        return children(waits, index, depth) + waits->watched + residents(waits, index)
               + (waits->work_threads > 0);
}

/* The kernel looks the file of an entry up when it takes the entry: those that mean the old file must be with
 * it before there is another. */
static int submit_all(struct io_loop *loop)
{
        int r = 1;

        while (io_uring_sq_ready(&loop->ring) > 0 && (r > 0 || r == -EINTR))
                r = io_ring_submit(&loop->ring);
        loop->inline_cqes = 0;
        return io_uring_sq_ready(&loop->ring) == 0 ? 0 : r < 0 ? r : -EAGAIN;
}

static int set_place(struct wait_room *room, unsigned place, int fd, int *ret)
{
        struct io_loop *loop = room->loop;
        bool fixed = loop->file_flags & IOSQE_FIXED_FILE;
        int r = submit_all(loop);

        if (r >= 0 && fixed)
                r = io_ring_set_file(&loop->ring, io_loop_place(loop, place), fd);
        if (r >= 0)
                *ret = fixed && fd >= 0 ? (int)io_loop_place(loop, place) : fd;
        return r;
}

/* What a target declares fits its callbacks. */
static void check_declared(const struct target *target)
{
        const struct target_waits *waits = &target->desc->waits;

        assert(waits->children <= TARGET_CHILDREN_MAX && waits->background <= TARGET_BACKGROUND_MAX
                && waits->device_background <= TARGET_BACKGROUND_MAX && waits->files <= TARGET_QUEUE_FILES_MAX
                && waits->work_threads <= TARGET_WORK_THREADS_MAX);
        assert(waits->background == 0 || target->background);
        assert(waits->device_background == 0 || target->device_background);
        /* Its requests have no coroutine. It may still have the network, and use it at once. */
        assert(!(target->desc->flags & TARGET_NEVER_WAITS) || !reserves_any(waits));
}

int wait_room_open(struct io_loop *loop, unsigned depth, struct work_pool *work, int *failure)
{
        const struct target_waits *waits = waits_of(loop->queue.device);
        struct wait_room *room;

        if (!declares_any(loop->queue.device->target->desc))
                return 0;
        check_declared(loop->queue.device->target);
        room = loop->waits = calloc(1, sizeof(*room));
        if (!room)
                return -ENOMEM;
        room->loop = loop;
        room->failure = failure;
        room->children_free = children(waits, loop->queue.index, depth);
        for (unsigned i = 0; i < TARGET_QUEUE_FILES_MAX; i++)
                room->files[i] = -1;
        if (waits->work_threads == 0)
                return 0;
        room->work = work_pool_port(work, loop->queue.index);
        return set_place(room, waits->files, work_port_fd(room->work), &room->work_file);
}

void wait_room_close(struct io_loop *loop)
{
        assert(loop->residents == 0);
        free(loop->waits);
        loop->waits = NULL;
}

int target_queue_set_file(struct target_queue *queue, unsigned file, int fd)
{
        struct wait_room *room = io_loop_of(queue)->waits;
        unsigned of_disk = wait_room_file(queue, file), place = of_disk - TARGET_QUEUE_FILE;
        int r;

        assert(file >= TARGET_QUEUE_FILE);
        if (room->serves && !(queue->device->target->desc->needs & TARGET_NEEDS_NETWORK))
                return -EACCES;
        r = set_place(room, place, fd, &room->files[place]);
        if (r >= 0)
                room->generations[of_disk]++;
        return r;
}

/* ---- the background ---- */

static void background_co(void *argument)
{
        struct background *self = argument;
        struct io_loop *loop = self->room->loop;
        struct co *co = co_current(&loop->coroutines);

        co->scope = &self->scope;
        self->entry(&loop->queue, self->number);
        co->scope = NULL;
        self->runs = false;
        loop->residents--;
}

static int begin(struct wait_room *room, void (*entry)(struct target_queue *, unsigned), unsigned count)
{
        int r = 0;

        for (unsigned i = 0; r >= 0 && i < count; i++) {
                struct background *self = &room->background[room->background_count++];

                *self = (struct background){.room = room, .entry = entry, .number = i, .runs = true};
                r = wait_room_begin(room, background_co, self);
        }
        return r;
}

int wait_room_run(struct io_loop *loop)
{
        const struct target *target = loop->queue.device->target;
        struct wait_room *room = loop->waits;
        int r = 0;

        if (!room)
                return 0;
        room->serves = true;
        if (room->work)
                r = wait_work_begin(room);
        if (r >= 0 && loop->queue.index == 0)
                r = begin(room, target->device_background, target->desc->waits.device_background);
        if (r >= 0)
                r = begin(room, target->background, target->desc->waits.background);
        if (r >= 0)
                io_loop_run_ready(loop);
        return r;
}

/* What is cancelled is ready at once, or after a completion. */
static int stop_one(struct io_loop *loop, struct background *self, int (*turn)(struct io_loop *, bool))
{
        int r = 0;

        while (r >= 0 && self->runs) {
                bool all = scope_stop(loop, &self->scope);

                io_loop_run_ready(loop);
                if (self->runs)
                        r = turn(loop, all);
        }
        return r;
}

int wait_room_stop(struct io_loop *loop, int (*turn)(struct io_loop *loop, bool wait))
{
        struct wait_room *room = loop->waits;
        int r = 0;

        if (!room)
                return 0;
        while (r >= 0 && room->background_count > 0) {
                r = stop_one(loop, &room->background[room->background_count - 1], turn);
                if (r >= 0)
                        room->background_count--;
        }
        if (r >= 0 && room->work)
                wait_work_end(room);
        while (r >= 0 && room->work_runs)
                r = turn(loop, true);
        return r;
}

bool target_queue_stopping(const struct target_queue *queue)
{
        return scope_is_stopping(io_loop_of(queue));
}
