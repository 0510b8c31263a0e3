/* SPDX-License-Identifier: MIT */
/* What the room of a queue consists of. Private to this folder. */
#pragma once

#include "targets/worker/wait/wait_room.h"

#include <assert.h>

struct wait_room;

/* A coroutine of the background. */
struct background {
        struct co_scope scope;
        struct wait_room *room;
        void (*entry)(struct target_queue *queue, unsigned number);
        unsigned number;
        bool runs;
};

struct wait_room {
        struct io_loop *loop;
        bool serves;                       /* what its ring may do is fixed */
        unsigned children_free;            /* stacks */
        struct co_mutex watched;           /* the stack of await_watched() alone */
        int files[TARGET_QUEUE_FILES_MAX]; /* what an entry calls them; -1: empty */
        /* By the `file` of target_wait.h: raised when another file is put there, and by await_cancel(). What
         * has begun before performs nothing more there. */
        unsigned generations[TARGET_QUEUE_FILE + TARGET_QUEUE_FILES_MAX];
        /* In the order in which they begin; the other way round they stop. */
        struct background background[2 * TARGET_BACKGROUND_MAX];
        unsigned background_count;
        struct work_port *work; /* NULL: no threads */
        int work_file;          /* what an entry calls the descriptor of `work` */
        uint64_t work_news;     /* read from it */
        bool work_ends, work_runs;
        int *failure; /* the owner's: an error after which the queue cannot go on */
};

/* Return what the queue of the disk calls a `file` of target_wait.h: each target of a tree counts its own. */
static inline unsigned wait_room_file(const struct target_queue *queue, unsigned file)
{
        if (file < TARGET_QUEUE_FILE) {
                assert(file < queue->device->file_count);
                return queue->first_file + file;
        }
        assert(file - TARGET_QUEUE_FILE < queue->device->target->desc->waits.files);
        return queue->first_place + file;
}

/* Begin a coroutine that takes what the threads have done, or ask it to end. Return 0 or -errno. */
int wait_work_begin(struct wait_room *room);
void wait_work_end(struct wait_room *room);

/* Prepare a coroutine that belongs to no request: the next io_loop_run_ready() begins it. co_start() is
 * compiled into the one place where requests begin. Return 0 or -errno. */
static inline int wait_room_begin(struct wait_room *room, void (*entry)(void *argument), void *argument)
{
        struct co *co;
        int r = co_prepare(&room->loop->coroutines, entry, argument, &co);

        if (r < 0)
                return r;
        room->loop->residents++;
        co_list_append(&room->loop->ready, co);
        return 0;
}
