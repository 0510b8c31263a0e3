/* SPDX-License-Identifier: MIT */
/* A target for tests: a disk in two files, which can be made to break a promise. */
#include "tests/crash/crash_pair.h"
#include "targets/worker/io/io_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FILES = 2, WRITE_MAX = 64 * 1024, DISCARD_MAX = 1 << 20, COPIES = 256, BLOCK = 512 };

struct pair_options {
        char *paths[FILES];
        int fault; /* enum pair_fault */
};

struct range {
        uint64_t offset;
        uint32_t length; /* 0: none */
};

/* What only the faults need. */
struct pair_queue {
        struct range unwritten, undiscarded;
        bool flushes;
        struct co_list joined;                  /* what waits for that flush */
        uint64_t changes[FILES], synced[FILES]; /* how many were done; how many of them a flush has reached */
        bool copied[COPIES];
        char unwritten_data[WRITE_MAX], copies[COPIES][BLOCK]; /* of the first blocks of the disk */
};

/* A part of a request that lies in one file. */
struct piece {
        unsigned file;
        uint32_t position, length; /* in the request */
        uint64_t offset;           /* in the file */
};

static const char *const fault_names[] = {
        [PAIR_SOUND] = "none",
        [PAIR_ANSWERS_FROM_MEMORY] = "answers-from-memory",
        [PAIR_FLUSHES_NOTHING] = "flushes-nothing",
        [PAIR_IGNORES_FUA] = "ignores-fua",
        [PAIR_FLUSHES_ONE_FILE] = "flushes-one-file",
        [PAIR_DISCARDS_LATE] = "discards-late",
        [PAIR_JOINS_FLUSHES] = "joins-flushes",
        [PAIR_FLUSHES_OWN_WRITES] = "flushes-own-writes",
        [PAIR_READS_STALE] = "reads-stale",
        [PAIR_HIDES_WRITES] = "hides-writes",
        [_PAIR_FAULT_MAX] = NULL,
};

const char *pair_fault_name(enum pair_fault fault)
{
        return fault_names[fault];
}

static const struct option_field pair_fields[] = {
        {.name = "first",
         .kind = OPTION_STRING,
         .offset = offsetof(struct pair_options, paths[0]),
         .required = true,
         .length_max = 4096},
        {.name = "second",
         .kind = OPTION_STRING,
         .offset = offsetof(struct pair_options, paths[1]),
         .required = true,
         .length_max = 4096},
        {.name = "fault",
         .kind = OPTION_ENUM,
         .offset = offsetof(struct pair_options, fault),
         .names = fault_names},
};

static const char *const pair_ignored[] = {"type", NULL};

static const struct option_table pair_options_table = {
        .options = pair_fields,
        .count = ARRAY_SIZE(pair_fields),
        .struct_size = sizeof(struct pair_options),
        .ignored = pair_ignored,
};

static const struct target_desc pair_desc = {
        .name = "pair",
        .summary = "Takes turns between two files, for tests",
        .flags = TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE,
        .options = &pair_options_table,
};

static enum pair_fault fault_of(const struct target_io *io)
{
        const struct pair_options *options = io->queue->device->config;

        return (enum pair_fault)options->fault;
}

static struct piece piece_at(const struct range *range, uint32_t position)
{
        uint64_t at = range->offset + position, chunk = at / PAIR_CHUNK, within = at % PAIR_CHUNK;
        uint32_t rest = range->length - position, length = (uint32_t)(PAIR_CHUNK - within);

        return (struct piece){
                .file = (unsigned)(chunk % FILES),
                .position = position,
                .length = length < rest ? length : rest,
                .offset = chunk / FILES * PAIR_CHUNK + within,
        };
}

static struct range range_of(const struct target_io *io)
{
        return (struct range){.offset = io->offset, .length = io->length};
}

/* ---- faults ---- */

static int write_by_call(const struct target_io *io, const struct range *range, const char *data)
{
        const struct target_device *device = io->queue->device;
        struct piece piece;

        for (uint32_t done = 0; done < range->length; done += piece.length) {
                piece = piece_at(range, done);
                if (pwrite(device->files[piece.file], data + done, piece.length, (off_t)piece.offset)
                        != (ssize_t)piece.length)
                        return -EIO;
        }
        return 0;
}

static int write_hidden(const struct target_io *io)
{
        const struct target_device *device = io->queue->device;
        const struct range range = range_of(io);
        struct piece piece;

        for (uint32_t done = 0; done < io->length; done += piece.length) {
                struct iovec vector;

                piece = piece_at(&range, done);
                vector = (struct iovec){.iov_base = (char *)io->data + done, .iov_len = piece.length};
                if (pwritev(device->files[piece.file], &vector, 1, (off_t)piece.offset)
                        != (ssize_t)piece.length)
                        return -EIO;
        }
        return (int)io->length;
}

/* At the next request. */
static int write_what_was_answered(const struct target_io *io)
{
        struct pair_queue *state = io->queue->state;
        struct range range = state->unwritten;

        state->unwritten.length = 0;
        return write_by_call(io, &range, state->unwritten_data);
}

static int answer_from_memory(const struct target_io *io)
{
        struct pair_queue *state = io->queue->state;

        memcpy(state->unwritten_data, io->data, io->length);
        state->unwritten = range_of(io);
        return (int)io->length;
}

/* Blocks that were read once keep what was read then. */
static void read_copies(const struct target_io *io)
{
        struct pair_queue *state = io->queue->state;
        char *data = io->data;

        for (uint64_t block = io->offset / BLOCK; block < (io->offset + io->length) / BLOCK;
                block++, data += BLOCK) {
                if (block >= COPIES)
                        return;
                if (state->copied[block])
                        memcpy(data, state->copies[block], BLOCK);
                else
                        memcpy(state->copies[block], data, BLOCK);
                state->copied[block] = true;
        }
}

/* ---- callbacks ---- */

static int pair_read(struct target_io *io)
{
        const struct range range = range_of(io);
        int r = write_what_was_answered(io);
        struct piece piece;

        for (uint32_t done = 0; r >= 0 && done < io->length; done += piece.length) {
                piece = piece_at(&range, done);
                r = await_read(io, piece.file, piece.position, piece.length, piece.offset);
        }
        if (r >= 0 && fault_of(io) == PAIR_READS_STALE)
                read_copies(io);
        return r < 0 ? r : (int)io->length;
}

static int pair_write(struct target_io *io)
{
        struct pair_queue *state = io->queue->state;
        int flags = io->flags & IO_FUA && fault_of(io) != PAIR_IGNORES_FUA ? RWF_DSYNC : 0;
        const struct range range = range_of(io);
        int r = write_what_was_answered(io);
        struct piece piece;

        if (r >= 0 && fault_of(io) == PAIR_HIDES_WRITES)
                return write_hidden(io);
        if (r >= 0 && fault_of(io) == PAIR_ANSWERS_FROM_MEMORY && flags == 0)
                return answer_from_memory(io);
        for (uint32_t done = 0; r >= 0 && done < io->length; done += piece.length) {
                piece = piece_at(&range, done);
                r = await_write(io, piece.file, piece.position, piece.length, piece.offset, flags);
                state->changes[piece.file]++;
        }
        return r < 0 ? r : (int)io->length;
}

static int punch(struct target_io *io, const struct range *range)
{
        struct pair_queue *state = io->queue->state;
        struct piece piece;
        int r = 0;

        for (uint32_t done = 0; r >= 0 && done < range->length; done += piece.length) {
                piece = piece_at(range, done);
                r = await_fallocate(io, piece.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, piece.offset,
                        piece.length);
                state->changes[piece.file]++;
        }
        return r;
}

static int flush_changed(struct target_io *io, unsigned file)
{
        struct pair_queue *state = io->queue->state;
        uint64_t changes = state->changes[file];
        int r;

        if (state->synced[file] == changes)
                return 0;
        r = await_fdatasync(io, file);
        if (r >= 0 && state->synced[file] < changes)
                state->synced[file] = changes;
        return r;
}

static int flush_files(struct target_io *io)
{
        unsigned files = fault_of(io) == PAIR_FLUSHES_ONE_FILE ? 1 : FILES;
        struct pair_queue *state = io->queue->state;
        struct range late = state->undiscarded;
        int r;

        state->undiscarded.length = 0;
        r = punch(io, &late);
        for (unsigned i = 0; r >= 0 && i < files; i++)
                r = fault_of(io) == PAIR_FLUSHES_OWN_WRITES ? flush_changed(io, i) : await_fdatasync(io, i);
        return r;
}

/* What was written since the other flush was begun may not be on the disk when that one is over. */
static int flush_or_join(struct target_io *io)
{
        struct pair_queue *state = io->queue->state;
        struct io_loop *loop = io_loop_of(io->queue);
        int r;

        if (state->flushes) {
                struct co *co = co_current(&loop->coroutines);

                co_list_append(&state->joined, co);
                co_suspend(co);
                return 0;
        }
        state->flushes = true;
        r = flush_files(io);
        state->flushes = false;
        co_list_splice(&loop->ready, &state->joined);
        return r;
}

static int pair_flush(struct target_io *io)
{
        int r = write_what_was_answered(io);

        if (r < 0 || fault_of(io) == PAIR_FLUSHES_NOTHING)
                return r;
        return fault_of(io) == PAIR_JOINS_FLUSHES ? flush_or_join(io) : flush_files(io);
}

static int pair_write_zeroes(struct target_io *io)
{
        const struct range range = range_of(io);
        int r = write_what_was_answered(io);

        return r < 0 ? r : punch(io, &range);
}

static int pair_discard(struct target_io *io)
{
        struct pair_queue *state = io->queue->state;

        if (fault_of(io) != PAIR_DISCARDS_LATE)
                return pair_write_zeroes(io);
        state->undiscarded = range_of(io);
        return 0;
}

/* ---- open ---- */

static int pair_open(struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        const struct pair_options *options = device->config;
        uint64_t smallest = UINT64_MAX;

        for (unsigned i = 0; i < FILES; i++) {
                struct stat stat;
                int fd = open(options->paths[i], O_RDWR | O_CLOEXEC);

                if (fd < 0 || fstat(fd, &stat) < 0) {
                        int error = errno,
                            r = problem_add(problems, error, "/target", "PairNotOpened",
                                    "%s cannot be opened: %s.", options->paths[i], strerror(error));

                        return r < 0 ? r : -error;
                }
                device->files[device->file_count++] = fd;
                smallest = (uint64_t)stat.st_size < smallest ? (uint64_t)stat.st_size : smallest;
        }
        *ret = (struct target_geometry){.size = smallest / PAIR_CHUNK * PAIR_CHUNK * FILES,
                .discard_granularity = PAIR_CHUNK,
                .max_discard_size = DISCARD_MAX,
                .max_write_zeroes_size = DISCARD_MAX,
                .volatile_cache = true};
        return 0;
}

const struct target pair_target = {
        .desc = &pair_desc,
        .queue_size = sizeof(struct pair_queue),
        .open = pair_open,
        .read = pair_read,
        .write = pair_write,
        .flush = pair_flush,
        .discard = pair_discard,
        .write_zeroes = pair_write_zeroes,
};
