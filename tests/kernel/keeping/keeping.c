/* SPDX-License-Identifier: MIT */
/* A target that has no store: each block that was written is a record in the kept memory of its only queue. So a disk whose
 * kept memory is lost reads as zeroes. The linker takes it in the place of the null target. Its last block is a
 * report. */
#include "tests/kernel/keeping/keeping.h"
#include "targets/null/null_desc.h"
#include "targets/kept/record_log.h"
#include "targets/null/null.h"

#include <errno.h>
#include <string.h>

struct block {
        uint64_t number;
        char data[KEEPING_BLOCK];
};

struct keeping_queue {
        struct record_log *log;
        int slot[KEEPING_BLOCKS]; /* of each block's record; -1: zeroes */
        struct keeping_report report;
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

/* A worker may have died when the new record of a block was there, and the older one too. */
static int find_block(void *userdata, unsigned slot, const void *record, uint32_t length)
{
        struct keeping_queue *state = userdata;
        const struct block *block = record;

        if (length != sizeof(*block) || block->number >= KEEPING_BLOCKS)
                return -EIO;
        if (state->slot[block->number] >= 0)
                record_log_erase(state->log, (unsigned)state->slot[block->number]);
        state->slot[block->number] = (int)slot;
        return 0;
}

/* A worker that dies before its queue serves has counted itself. */
static int keeping_start_device(struct target_device *device, struct problem_list *problems)
{
        uint64_t *workers = device->kept.memory;

        (void)problems;
        ++*workers;
        return 0;
}

static int keeping_start_queue(struct target_queue *queue)
{
        struct keeping_queue *state = queue->state;
        const struct target_kept *disk = &queue->device->kept, *kept = queue->kept;
        const uint64_t *workers = disk->memory;
        int r;

        state->report.disk_was_fresh = disk->state != TARGET_KEPT_FOUND;
        state->report.queue_was_fresh = kept->state != TARGET_KEPT_FOUND;
        state->report.workers = *workers;
        memset(state->slot, -1, sizeof(state->slot));
        r = record_log_open(kept->memory, kept->size, kept->seed, sizeof(struct block), &state->log);
        if (r >= 0)
                r = record_log_replay(state->log, find_block, state);
        if (r < 0)
                return r;
        state->report.rejected = record_log_rejected(state->log);
        return 0;
}

static void keeping_stop_queue(struct target_queue *queue)
{
        struct keeping_queue *state = queue->state;

        state->log = record_log_free(state->log);
}

static void read_block(struct keeping_queue *state, uint64_t number, char *data)
{
        memset(data, 0, KEEPING_BLOCK);
        if (number >= KEEPING_BLOCKS) {
                state->report.records = record_log_count(state->log);
                memcpy(data, &state->report, sizeof(state->report));
        } else if (state->slot[number] >= 0) {
                uint32_t length;
                const struct block *block =
                        record_log_get(state->log, (unsigned)state->slot[number], &length);

                memcpy(data, block->data, KEEPING_BLOCK);
        }
}

static int keeping_read(struct target_io *io)
{
        for (uint32_t at = 0; at < io->length; at += KEEPING_BLOCK)
                read_block(io->queue->state, (io->offset + at) / KEEPING_BLOCK, (char *)io->data + at);
        return (int)io->length;
}

static int write_block(struct keeping_queue *state, uint64_t number, const char *data)
{
        struct block block = {.number = number};
        int slot;

        if (number >= KEEPING_BLOCKS)
                return -EIO;
        memcpy(block.data, data, KEEPING_BLOCK);
        slot = record_log_append(state->log, &block, sizeof(block));
        if (slot < 0)
                return slot;
        if (state->slot[number] >= 0)
                record_log_erase(state->log, (unsigned)state->slot[number]);
        state->slot[number] = slot;
        return 0;
}

static int keeping_write(struct target_io *io)
{
        int r = 0;

        for (uint32_t at = 0; r >= 0 && at < io->length; at += KEEPING_BLOCK)
                r = write_block(
                        io->queue->state, (io->offset + at) / KEEPING_BLOCK, (const char *)io->data + at);
        return r < 0 ? r : (int)io->length;
}

static int keeping_flush(struct target_io *io)
{
        (void)io;
        return 0;
}

const struct target null_target = {
        .desc = &null_desc,
        .queue_size = sizeof(struct keeping_queue),
        .open = keeping_open,
        .start_device = keeping_start_device,
        .start_queue = keeping_start_queue,
        .stop_queue = keeping_stop_queue,
        .read = keeping_read,
        .write = keeping_write,
        .flush = keeping_flush,
};
