/* SPDX-License-Identifier: MIT */
/* A target whose writes stand in a line. */
#include "tests/target/lined_target.h"

#include "targets/loop/loop.h"
#include "targets/target_wait.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { COPIES = 4, COPY_SIZE = 64 * 1024 };

struct entry {
        int fd;
        uint64_t offset; /* bytes, in the file */
        uint32_t length; /* bytes */
        char *data;
        int result;
        bool done;
        struct entry *next;
};

/* Of the hasty one, which needs the data after its request has gone. */
struct copy {
        struct entry entry;
        bool used;
        char data[COPY_SIZE];
};

struct lined_queue {
        struct co_range_lock ranges; /* of the disk, held by what reads or writes them */
        struct co_mutex mutex;       /* of the line */
        struct entry *first, *last;
        struct co_condition news, done;
        struct copy copies[COPIES];
};

static struct target_desc lined_desc, hasty_desc;
struct target lined_target, hasty_target;

static struct lined_queue *state_of(const struct target_queue *queue)
{
        return queue->state;
}

static struct entry entry_of(const struct target_io *io)
{
        const struct target_device *device = io->queue->device;

        return (struct entry){
                .fd = device->files[LOOP_FILE], .offset = io->offset, .length = io->length, .data = io->data};
}

/* ---- on a thread that may block ---- */

static int write_run(void *argument)
{
        const struct entry *entry = argument;
        ssize_t n = pwrite(entry->fd, entry->data, entry->length, (off_t)entry->offset);

        return n < 0 ? -errno : (size_t)n == entry->length ? (int)n : -EIO;
}

static int read_run(void *argument)
{
        const struct entry *entry = argument;
        ssize_t n = pread(entry->fd, entry->data, entry->length, (off_t)entry->offset);

        return n < 0 ? -errno : (size_t)n == entry->length ? (int)n : -EIO;
}

/* ---- the line ---- */

static void append(struct target_queue *queue, struct entry *entry)
{
        struct lined_queue *state = state_of(queue);

        await_mutex(queue, &state->mutex);
        if (state->last)
                state->last->next = entry;
        else
                state->first = entry;
        state->last = entry;
        co_condition_signal(&state->news);
        co_mutex_unlock(&state->mutex);
}

/* Return NULL when asked to stop. */
static struct entry *take(struct target_queue *queue)
{
        struct lined_queue *state = state_of(queue);
        struct entry *entry;
        int r = 0;

        await_mutex(queue, &state->mutex);
        while (!state->first && r >= 0)
                r = await_condition(queue, &state->news, &state->mutex);
        entry = state->first;
        if (entry) {
                state->first = entry->next;
                if (!state->first)
                        state->last = NULL;
        }
        co_mutex_unlock(&state->mutex);
        return entry;
}

static void lined_background(struct target_queue *queue, unsigned number)
{
        struct entry *entry;

        (void)number;
        while ((entry = take(queue))) {
                entry->result = await_work(queue, write_run, entry);
                entry->done = true;
                co_condition_broadcast(&state_of(queue)->done);
        }
}

/* ---- requests ---- */

static int lined_write(struct target_io *io)
{
        struct lined_queue *state = state_of(io->queue);
        struct entry entry = entry_of(io);
        struct co_range range;

        await_range(io->queue, &state->ranges, &range, io->offset, io->length, CO_RANGE_EXCLUSIVE);
        append(io->queue, &entry);
        while (!entry.done)
                (void)await_condition(io->queue, &state->done, NULL); /* a request is not asked to stop */
        co_range_unlock(&state->ranges, &range);
        return entry.result;
}

static struct copy *free_copy(struct lined_queue *state)
{
        for (unsigned i = 0; i < COPIES; i++)
                if (!state->copies[i].used || state->copies[i].entry.done)
                        return &state->copies[i];
        return NULL;
}

static int hasty_write(struct target_io *io)
{
        struct lined_queue *state = state_of(io->queue);
        struct copy *copy;

        while (!(copy = free_copy(state)))
                (void)await_condition(io->queue, &state->done, NULL);
        copy->used = true;
        copy->entry = entry_of(io);
        copy->entry.data = memcpy(copy->data, io->data, io->length);
        append(io->queue, &copy->entry);
        return (int)io->length;
}

static int lined_read(struct target_io *io)
{
        struct lined_queue *state = state_of(io->queue);
        struct entry entry = entry_of(io);
        struct co_range range;
        int r;

        await_range(io->queue, &state->ranges, &range, io->offset, io->length, CO_RANGE_SHARED);
        r = await_work(io->queue, read_run, &entry);
        co_range_unlock(&state->ranges, &range);
        return r;
}

/* After all that stands before it. */
static int lined_flush(struct target_io *io)
{
        struct lined_queue *state = state_of(io->queue);
        struct co_range all;
        int r;

        await_range(io->queue, &state->ranges, &all, 0, UINT64_MAX, CO_RANGE_EXCLUSIVE);
        r = await_fdatasync(io, LOOP_FILE);
        co_range_unlock(&state->ranges, &all);
        return r;
}

/* The core moves nothing by itself. */
static int lined_open(
        struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        int r = loop_open(device, ret, problems);

        device->linear = false;
        ret->prefers_zero_copy = false;
        return r;
}

static void make(const char *name, struct target_desc *desc, struct target *target)
{
        *desc = *loop_target.desc;
        desc->name = name;
        desc->flags = TARGET_REISSUE_SAFE | TARGET_ONE_QUEUE;
        desc->verb_count = 0;
        desc->waits = (struct target_waits){.background = 1, .work_threads = 2};
        *target = loop_target;
        target->desc = desc;
        target->queue_size = sizeof(struct lined_queue);
        target->open = lined_open;
        target->background = lined_background;
        target->read = lined_read;
        target->write = lined_write;
        target->flush = lined_flush;
        target->discard = target->write_zeroes = NULL;
        target->act = NULL;
        target->scan = NULL;
}

void lined_targets_make(void)
{
        make("lined", &lined_desc, &lined_target);
        make("hasty", &hasty_desc, &hasty_target);
        hasty_target.write = hasty_write;
}

const struct target *lined_target_find(const char *name)
{
        const struct target *const all[] = {&lined_target, &hasty_target};

        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                if (strcmp(name, all[i]->desc->name) == 0)
                        return all[i];
        return NULL;
}
