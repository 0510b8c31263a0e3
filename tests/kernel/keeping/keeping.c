/* SPDX-License-Identifier: MIT */
/* A target that has no store: each block that was written is a record in the kept memory of the queue that wrote it. So a disk
 * whose kept memory is lost reads as zeroes. The linker takes it in the place of the null target. Its last block is a
 * report.
 *
 * Each queue stores into its own log only, and a block may have a record in each: the one of the highest sequence counts. */
#include "tests/kernel/keeping/keeping.h"
#include "targets/null/null_desc.h"
#include "targets/kept/record_log.h"
#include "targets/null/null.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct block {
        uint64_t number, sequence;
        char data[KEEPING_BLOCK];
};

/* Of a queue. */
struct part {
        struct record_log *log;
        struct {
                uint64_t sequence; /* 0: the log has no record of the block */
                unsigned slot;
        } places[KEEPING_BLOCKS];
};

struct keeping_device {
        pthread_mutex_t lock; /* over all that is below, and over the logs */
        uint64_t last;        /* sequence */
        struct keeping_report report;
        struct part *parts; /* of each queue */
};

static int keeping_open(
        struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        (void)problems;
        if (device->kept.state != TARGET_KEPT_NONE || device->kept.memory || device->queues_kept)
                return -EPROTO; /* the worker before this one may still store there */
        *ret = (struct target_geometry){.logical_block_size = KEEPING_BLOCK};
        return 0;
}

/* A queue that has stopped may have what another one still reads. */
static void keeping_close(struct target_device *device)
{
        struct keeping_device *state = device->state;

        for (unsigned i = 0; state->parts && i < device->queues; i++)
                state->parts[i].log = record_log_free(state->parts[i].log);
        free(state->parts);
        state->parts = NULL;
}

/* A worker that dies before its queues serve has counted itself. */
static int keeping_start_device(struct target_device *device, struct problem_list *problems)
{
        struct keeping_device *state = device->state;
        uint64_t *workers = device->kept.memory;

        (void)problems;
        state->report.workers = ++*workers;
        state->report.disk_was_fresh = device->kept.state != TARGET_KEPT_FOUND;
        state->parts = calloc(device->queues, sizeof(*state->parts));
        return state->parts ? -pthread_mutex_init(&state->lock, NULL) : -ENOMEM;
}

struct replay {
        struct keeping_device *state;
        struct part *part;
};

static void keep(struct part *part, const struct block *block, unsigned slot)
{
        if (part->places[block->number].sequence > 0)
                record_log_erase(part->log, part->places[block->number].slot);
        part->places[block->number].slot = slot;
        part->places[block->number].sequence = block->sequence;
}

/* A worker may have died when the new record of a block was there, and the older one too. */
static int find_block(void *userdata, unsigned slot, const void *record, uint32_t length)
{
        const struct replay *replay = userdata;
        const struct block *block = record;

        if (length != sizeof(*block) || block->number >= KEEPING_BLOCKS || block->sequence == 0)
                return -EIO;
        keep(replay->part, block, slot);
        if (block->sequence > replay->state->last)
                replay->state->last = block->sequence;
        return 0;
}

static int open_log(struct keeping_device *state, const struct target_queue *queue)
{
        const struct target_kept *kept = queue->kept;
        struct part *part = &state->parts[queue->index];
        struct replay replay = {state, part};
        int r = record_log_open(kept->memory, kept->size, kept->seed, sizeof(struct block), &part->log);

        if (r >= 0)
                r = record_log_replay(part->log, find_block, &replay);
        if (r < 0)
                return r;
        if (kept->state != TARGET_KEPT_FOUND)
                state->report.queue_was_fresh = 1;
        state->report.rejected += record_log_rejected(part->log);
        return 0;
}

/* The core lets no queue serve before all have started. */
static int keeping_start_queue(struct target_queue *queue)
{
        struct keeping_device *state = queue->device->state;
        int r;

        pthread_mutex_lock(&state->lock);
        r = open_log(state, queue);
        pthread_mutex_unlock(&state->lock);
        return r;
}

/* Return the part that has the newest record of a block; NULL: none has one. */
static const struct part *newest(const struct target_device *device, uint64_t number)
{
        const struct keeping_device *state = device->state;
        const struct part *found = NULL;
        uint64_t sequence = 0;

        for (unsigned i = 0; i < device->queues; i++)
                if (state->parts[i].places[number].sequence > sequence) {
                        found = &state->parts[i];
                        sequence = found->places[number].sequence;
                }
        return found;
}

static void read_report(const struct target_device *device, char *data)
{
        const struct keeping_device *state = device->state;
        struct keeping_report report = state->report;

        for (unsigned i = 0; i < device->queues; i++) {
                unsigned records = record_log_count(state->parts[i].log);

                report.records += records;
                report.queues_with_records += records > 0;
        }
        memcpy(data, &report, sizeof(report));
}

static void read_block(const struct target_device *device, uint64_t number, char *data)
{
        const struct part *part = number < KEEPING_BLOCKS ? newest(device, number) : NULL;

        memset(data, 0, KEEPING_BLOCK);
        if (number >= KEEPING_BLOCKS) {
                read_report(device, data);
        } else if (part) {
                uint32_t length;
                const struct block *block = record_log_get(part->log, part->places[number].slot, &length);

                memcpy(data, block->data, KEEPING_BLOCK);
        }
}

static int keeping_read(struct target_io *io)
{
        struct keeping_device *state = io->queue->device->state;

        pthread_mutex_lock(&state->lock);
        for (uint32_t at = 0; at < io->length; at += KEEPING_BLOCK)
                read_block(io->queue->device, (io->offset + at) / KEEPING_BLOCK, (char *)io->data + at);
        pthread_mutex_unlock(&state->lock);
        return (int)io->length;
}

static int write_block(const struct target_queue *queue, uint64_t number, const char *data)
{
        struct keeping_device *state = queue->device->state;
        struct part *part = &state->parts[queue->index];
        struct block block = {.number = number, .sequence = state->last + 1};
        int slot;

        if (number >= KEEPING_BLOCKS)
                return -EIO;
        memcpy(block.data, data, KEEPING_BLOCK);
        slot = record_log_append(part->log, &block, sizeof(block));
        if (slot < 0)
                return slot;
        state->last = block.sequence;
        keep(part, &block, (unsigned)slot);
        return 0;
}

static int keeping_write(struct target_io *io)
{
        struct keeping_device *state = io->queue->device->state;
        int r = 0;

        pthread_mutex_lock(&state->lock);
        for (uint32_t at = 0; r >= 0 && at < io->length; at += KEEPING_BLOCK)
                r = write_block(io->queue, (io->offset + at) / KEEPING_BLOCK, (const char *)io->data + at);
        pthread_mutex_unlock(&state->lock);
        return r < 0 ? r : (int)io->length;
}

static int keeping_flush(struct target_io *io)
{
        (void)io;
        return 0;
}

const struct target null_target = {
        .desc = &null_desc,
        .device_size = sizeof(struct keeping_device),
        .open = keeping_open,
        .close = keeping_close,
        .start_device = keeping_start_device,
        .start_queue = keeping_start_queue,
        .read = keeping_read,
        .write = keeping_write,
        .flush = keeping_flush,
};
