/* SPDX-License-Identifier: MIT */
/* A target for tests: a disk in a file, and a log for each queue that is ahead of it. */
#include "tests/crash/crash_ahead.h"
#include "targets/kept/record_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { QUEUE_BYTES = 64 * 1024 };

struct ahead_options {
        char *path;
        int fault; /* enum ahead_fault */
};

struct record {
        uint64_t sequence, number;
        char data[AHEAD_BLOCK];
};

/* Of a queue. */
struct part {
        struct record_log *log;
        uint64_t count; /* of what it has written */
        struct {
                uint64_t sequence; /* 0: the log has no record of the block */
                unsigned slot;
        } places[AHEAD_BLOCKS];
};

struct ahead_device {
        /* Over all that is below, over reads of the logs, and over writes of the file and of a log. No wait of a coroutine
         * lies below it, so a flush makes system calls. */
        pthread_mutex_t lock;
        uint64_t *settled; /* in the kept memory of the disk */
        uint64_t last;     /* sequence */
        struct part parts[AHEAD_QUEUES_MAX];
        struct { /* AHEAD_APPENDS_LATE: answered, and not in the log */
                bool there;
                unsigned queue;
                uint64_t number;
                char data[AHEAD_BLOCK];
        } late;
};

static const char *const fault_names[] = {
        [AHEAD_SOUND] = "none",
        [AHEAD_APPENDS_LATE] = "appends-late",
        [AHEAD_SETTLES_FIRST] = "settles-first",
        [AHEAD_REPLAYS_ONE_LOG] = "replays-one-log",
        [AHEAD_COUNTS_BY_QUEUE] = "counts-by-queue",
        [AHEAD_REPLAYS_SETTLED] = "replays-settled",
        [AHEAD_FLUSHES_OWN_LOG] = "flushes-own-log",
        [_AHEAD_FAULT_MAX] = NULL,
};

const char *ahead_fault_name(enum ahead_fault fault)
{
        return fault_names[fault];
}

/* clang-format off */
static const struct option_field ahead_fields[] = {
        {.name = "path", .kind = OPTION_STRING, .offset = offsetof(struct ahead_options, path), .required = true,
                .length_max = 4096},
        {.name = "fault", .kind = OPTION_ENUM, .offset = offsetof(struct ahead_options, fault),
                .names = fault_names},
};
/* clang-format on */

static const char *const ahead_ignored[] = {"type", NULL};

static const struct option_table ahead_options_table = {
        .options = ahead_fields,
        .count = ARRAY_SIZE(ahead_fields),
        .struct_size = sizeof(struct ahead_options),
        .ignored = ahead_ignored,
};

static const struct target_desc ahead_desc = {
        .name = "ahead",
        .summary = "Has a log for each queue that is ahead of its file, for tests",
        .flags = TARGET_REISSUE_SAFE,
        .options = &ahead_options_table,
        .kept_disk_bytes = sizeof(uint64_t),
        .kept_queue_bytes = QUEUE_BYTES,
        .kept_version = 1,
};

static bool has_fault(const struct target_device *device, enum ahead_fault fault)
{
        const struct ahead_options *options = device->config;

        return options->fault == (int)fault;
}

static struct ahead_device *lock(const struct target_queue *queue)
{
        struct ahead_device *state = queue->device->state;

        pthread_mutex_lock(&state->lock);
        return state;
}

static void unlock(struct ahead_device *state)
{
        pthread_mutex_unlock(&state->lock);
}

/* ---- the logs ---- */

static void settle(struct ahead_device *state, uint64_t sequence)
{
        __atomic_store_n(state->settled, sequence, __ATOMIC_RELEASE);
}

static void erase(struct part *part, uint64_t number)
{
        if (part->places[number].sequence > 0)
                record_log_erase(part->log, part->places[number].slot);
        part->places[number].sequence = 0;
}

/* A worker that died between the two has left the older record of a block as well. */
static int append(const struct target_queue *queue, uint64_t number, const char *data)
{
        struct ahead_device *state = queue->device->state;
        struct part *part = &state->parts[queue->index];
        struct record record = {.sequence = state->last + 1, .number = number};
        int slot;

        if (has_fault(queue->device, AHEAD_COUNTS_BY_QUEUE))
                record.sequence = part->count + 1;
        memcpy(record.data, data, AHEAD_BLOCK);
        slot = record_log_append(part->log, &record, sizeof(record));
        if (slot < 0)
                return slot;
        erase(part, number);
        part->places[number].slot = (unsigned)slot;
        part->places[number].sequence = ++state->last;
        part->count++;
        return 0;
}

/* Return which queue has the record of the block that counts, of those that are not settled; -1: the file has it. */
static int newest(const struct ahead_device *state, uint64_t settled, uint64_t number)
{
        uint64_t sequence = settled;
        int queue = -1;

        for (unsigned i = 0; i < AHEAD_QUEUES_MAX; i++)
                if (state->parts[i].places[number].sequence > sequence) {
                        sequence = state->parts[i].places[number].sequence;
                        queue = (int)i;
                }
        return queue;
}

static const char *data_of(const struct ahead_device *state, int queue, uint64_t number)
{
        const struct part *part = &state->parts[queue];
        uint32_t length;
        const struct record *record = record_log_get(part->log, part->places[number].slot, &length);

        return record->data;
}

static int append_what_is_late(const struct target_queue *queue)
{
        struct ahead_device *state = queue->device->state;
        struct target_queue of = {.device = queue->device, .index = state->late.queue};
        bool there = state->late.there;

        state->late.there = false;
        return there ? append(&of, state->late.number, state->late.data) : 0;
}

/* ---- requests ---- */

static void take_from_logs(const struct ahead_device *state, const struct target_io *io)
{
        char *data = io->data;

        for (uint32_t at = 0; at < io->length; at += AHEAD_BLOCK) {
                uint64_t number = (io->offset + at) / AHEAD_BLOCK;
                int queue = newest(state, *state->settled, number);

                if (queue >= 0)
                        memcpy(data + at, data_of(state, queue, number), AHEAD_BLOCK);
        }
}

/* A flush of another queue may write to the file what the logs had when the read began. Then it is read again. */
static int ahead_read(struct target_io *io)
{
        struct ahead_device *state;
        uint64_t settled;
        bool again = true;

        while (again) {
                int r;

                state = lock(io->queue);
                settled = *state->settled;
                r = append_what_is_late(io->queue);
                unlock(state);
                if (r >= 0)
                        r = await_read(io, 0, 0, io->length, io->offset);
                if (r < 0)
                        return r;
                state = lock(io->queue);
                again = settled != *state->settled;
                if (!again)
                        take_from_logs(state, io);
                unlock(state);
        }
        return (int)io->length;
}

static void erase_what_is_settled(struct ahead_device *state, struct part *part)
{
        for (uint64_t i = 0; i < AHEAD_BLOCKS; i++)
                if (part->places[i].sequence <= *state->settled)
                        erase(part, i);
}

static int write_blocks(struct ahead_device *state, const struct target_io *io)
{
        const char *data = io->data;
        int r = 0;

        for (uint32_t at = 0; r >= 0 && at < io->length; at += AHEAD_BLOCK) {
                uint64_t number = (io->offset + at) / AHEAD_BLOCK;

                if (!has_fault(io->queue->device, AHEAD_APPENDS_LATE) || at + AHEAD_BLOCK < io->length) {
                        r = append(io->queue, number, data + at);
                        continue;
                }
                state->late.there = true;
                state->late.queue = io->queue->index;
                state->late.number = number;
                memcpy(state->late.data, data + at, AHEAD_BLOCK);
        }
        return r;
}

static int ahead_write(struct target_io *io)
{
        struct ahead_device *state = lock(io->queue);
        int r = append_what_is_late(io->queue);

        erase_what_is_settled(state, &state->parts[io->queue->index]);
        if (r >= 0)
                r = write_blocks(state, io);
        unlock(state);
        return r < 0 ? r : (int)io->length;
}

static int write_file(const struct ahead_device *state, uint64_t settled, const struct target_queue *queue)
{
        int fd = queue->device->files[0];

        for (uint64_t i = 0; i < AHEAD_BLOCKS; i++) {
                int of = newest(state, settled, i);

                if (of < 0 || (has_fault(queue->device, AHEAD_FLUSHES_OWN_LOG) && of != (int)queue->index))
                        continue;
                if (pwrite(fd, data_of(state, of, i), AHEAD_BLOCK, (off_t)(i * AHEAD_BLOCK)) != AHEAD_BLOCK)
                        return -EIO;
        }
        return fdatasync(fd) < 0 ? -errno : 0;
}

static int flush(struct ahead_device *state, const struct target_queue *queue)
{
        uint64_t settled = *state->settled;
        int r = append_what_is_late(queue);

        if (r >= 0 && has_fault(queue->device, AHEAD_SETTLES_FIRST))
                settle(state, state->last);
        if (r >= 0)
                r = write_file(state, settled, queue);
        if (r >= 0 && !has_fault(queue->device, AHEAD_FLUSHES_OWN_LOG))
                settle(state, state->last);
        return r;
}

static int ahead_flush(struct target_io *io)
{
        struct ahead_device *state = lock(io->queue);
        int r = flush(state, io->queue);

        unlock(state);
        return r;
}

/* ---- the beginning ---- */

/* The worker finds words for an error without a problem. */
static int ahead_open(
        struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        const struct ahead_options *options = device->config;
        struct stat stat;
        int fd = open(options->path, O_RDWR | O_CLOEXEC);

        (void)problems;
        if (fd < 0)
                return -errno;
        device->files[device->file_count++] = fd;
        if (fstat(fd, &stat) < 0)
                return -errno;
        if (stat.st_size == 0 || stat.st_size > AHEAD_BLOCKS * AHEAD_BLOCK)
                return -EINVAL;
        *ret = (struct target_geometry){
                .size = (uint64_t)stat.st_size, .logical_block_size = AHEAD_BLOCK, .volatile_cache = true};
        return 0;
}

static int ahead_start_device(struct target_device *device, struct problem_list *problems)
{
        struct ahead_device *state = device->state;

        (void)problems;
        if (!device->kept.memory || device->queues > AHEAD_QUEUES_MAX)
                return -EINVAL;
        state->settled = device->kept.memory;
        if (has_fault(device, AHEAD_REPLAYS_SETTLED))
                settle(state, 0);
        state->last = *state->settled;
        return -pthread_mutex_init(&state->lock, NULL);
}

struct replay {
        struct ahead_device *state;
        struct part *part;
};

static int find_record(void *userdata, unsigned slot, const void *found, uint32_t length)
{
        const struct replay *replay = userdata;
        const struct record *record = found;
        struct part *part = replay->part;

        if (length != sizeof(*record) || record->number >= AHEAD_BLOCKS || record->sequence == 0)
                return -EIO;
        if (record->sequence <= *replay->state->settled) {
                record_log_erase(part->log, slot);
                return 0;
        }
        erase(part, record->number);
        part->places[record->number].slot = slot;
        part->places[record->number].sequence = record->sequence;
        part->count = record->sequence;
        if (record->sequence > replay->state->last)
                replay->state->last = record->sequence;
        return 0;
}

static int open_log(struct ahead_device *state, const struct target_queue *queue)
{
        const struct target_kept *kept = queue->kept;
        struct part *part = &state->parts[queue->index];
        struct replay replay = {state, part};
        int r = record_log_open(kept->memory, kept->size, kept->seed, sizeof(struct record), &part->log);

        if (r < 0 || (has_fault(queue->device, AHEAD_REPLAYS_ONE_LOG) && queue->index > 0))
                return r;
        return record_log_replay(part->log, find_record, &replay);
}

static int ahead_start_queue(struct target_queue *queue)
{
        struct ahead_device *state = lock(queue);
        int r = open_log(state, queue);

        unlock(state);
        return r;
}

/* Not in stop_queue(): other queues may still read the log. */
static void ahead_close(struct target_device *device)
{
        struct ahead_device *state = device->state;

        for (unsigned i = 0; i < AHEAD_QUEUES_MAX; i++)
                state->parts[i].log = record_log_free(state->parts[i].log);
}

const struct target ahead_target = {
        .desc = &ahead_desc,
        .device_size = sizeof(struct ahead_device),
        .open = ahead_open,
        .close = ahead_close,
        .start_device = ahead_start_device,
        .start_queue = ahead_start_queue,
        .read = ahead_read,
        .write = ahead_write,
        .flush = ahead_flush,
};
