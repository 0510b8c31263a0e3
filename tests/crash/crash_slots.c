/* SPDX-License-Identifier: MIT */
/* A target for tests: a disk with data and pointers, in two files. */
#include "tests/crash/crash_slots.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DATA, MAP, FILES, POINTER = 512 };

struct slots_options {
        char *paths[FILES];
        bool barrier;
};

/* The slots in use are kept in memory only as a copy of the map. */
struct slots_device {
        unsigned char used[SLOTS_CHUNKS_MAX];
        char pointer[POINTER]; /* what is being written; one request at a time */
};

/* clang-format off */
static const struct option_field slots_fields[] = {
        {.name = "data", .kind = OPTION_STRING, .offset = offsetof(struct slots_options, paths[DATA]),
                .required = true, .length_max = 4096},
        {.name = "map", .kind = OPTION_STRING, .offset = offsetof(struct slots_options, paths[MAP]),
                .required = true, .length_max = 4096},
        {.name = "barrier", .kind = OPTION_BOOL, .offset = offsetof(struct slots_options, barrier)},
};
/* clang-format on */

static const char *const slots_ignored[] = {"type", NULL};

static const struct option_table slots_options_table = {
        .options = slots_fields,
        .count = ARRAY_SIZE(slots_fields),
        .struct_size = sizeof(struct slots_options),
        .ignored = slots_ignored,
};

static const struct target_desc slots_desc = {
        .name = "slots",
        .summary = "Has two slots for each chunk, for tests",
        .flags = TARGET_ONE_QUEUE,
        .options = &slots_options_table,
};

static uint64_t place_of(uint64_t chunk, unsigned slot)
{
        return (2 * chunk + slot) * SLOTS_CHUNK;
}

static int slots_read(struct target_io *io)
{
        const struct slots_device *state = io->queue->device->state;
        int r = 0;

        for (uint32_t done = 0; r >= 0 && done < io->length; done += SLOTS_CHUNK) {
                uint64_t chunk = (io->offset + done) / SLOTS_CHUNK;

                r = await_read(io, DATA, done, SLOTS_CHUNK, place_of(chunk, state->used[chunk]));
        }
        return r < 0 ? r : (int)io->length;
}

static int write_chunk(struct target_io *io, uint32_t position)
{
        const struct slots_options *options = io->queue->device->config;
        struct slots_device *state = io->queue->device->state;
        uint64_t chunk = (io->offset + position) / SLOTS_CHUNK;
        unsigned slot = !state->used[chunk];
        int r = await_write(io, DATA, position, SLOTS_CHUNK, place_of(chunk, slot), 0);

        if (r >= 0 && options->barrier)
                r = await_fdatasync(io, DATA);
        if (r < 0)
                return r;
        memset(state->pointer, (int)slot, POINTER);
        r = await_write_memory(io, MAP, state->pointer, POINTER, chunk * POINTER, 0);
        if (r >= 0)
                state->used[chunk] = (unsigned char)slot;
        return r;
}

static int slots_write(struct target_io *io)
{
        int r = 0;

        for (uint32_t done = 0; r >= 0 && done < io->length; done += SLOTS_CHUNK)
                r = write_chunk(io, done);
        return r < 0 ? r : (int)io->length;
}

static int slots_flush(struct target_io *io)
{
        int r = await_fdatasync(io, DATA);

        return r < 0 ? r : await_fdatasync(io, MAP);
}

static int read_map(struct slots_device *state, int fd, uint64_t chunks)
{
        for (uint64_t i = 0; i < chunks; i++) {
                char pointer[POINTER];

                if (pread(fd, pointer, POINTER, (off_t)(i * POINTER)) != POINTER
                        || (unsigned char)pointer[0] > 1)
                        return -EIO;
                state->used[i] = (unsigned char)pointer[0];
        }
        return 0;
}

static int open_files(struct target_device *device, uint64_t *ret_chunks)
{
        const struct slots_options *options = device->config;
        struct stat stat;

        for (unsigned i = 0; i < FILES; i++) {
                int fd = open(options->paths[i], O_RDWR | O_CLOEXEC);

                if (fd < 0)
                        return -errno;
                device->files[device->file_count++] = fd;
        }
        if (fstat(device->files[DATA], &stat) < 0)
                return -errno;
        *ret_chunks = (uint64_t)stat.st_size / SLOTS_CHUNK / 2;
        return *ret_chunks > 0 && *ret_chunks <= SLOTS_CHUNKS_MAX ? 0 : -EINVAL;
}

/* The worker finds words for an error without a problem. */
static int slots_open(
        struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        uint64_t chunks = 0;
        int r = open_files(device, &chunks);

        (void)problems;
        if (r >= 0)
                r = read_map(device->state, device->files[MAP], chunks);
        if (r < 0)
                return r;
        *ret = (struct target_geometry){.size = chunks * SLOTS_CHUNK,
                .logical_block_size = SLOTS_CHUNK,
                .logical_block_size_min = SLOTS_CHUNK,
                .volatile_cache = true};
        return 0;
}

const struct target slots_target = {
        .desc = &slots_desc,
        .device_size = sizeof(struct slots_device),
        .open = slots_open,
        .read = slots_read,
        .write = slots_write,
        .flush = slots_flush,
};
