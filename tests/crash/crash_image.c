/* SPDX-License-Identifier: MIT */
/* Makes of a record what a crash could have left in the files. */
#include "tests/crash/crash_image.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int image_init(struct crash_image *image, const int *fds, unsigned count, uint64_t capacity)
{
        *image = (struct crash_image){.count = count, .capacity = capacity};
        for (unsigned i = 0; i < count; i++) {
                struct crash_file *file = &image->files[i];

                file->fd = fds[i];
                file->base = calloc(1, capacity);
                file->made = calloc(1, capacity);
                file->there = calloc(1, capacity);
                if (!file->base || !file->made || !file->there)
                        return -ENOMEM;
        }
        return 0;
}

void image_clear(struct crash_image *image)
{
        for (unsigned i = 0; i < image->count; i++) {
                free(image->files[i].base);
                free(image->files[i].made);
                free(image->files[i].there);
                close_fd(image->files[i].fd);
        }
        *image = (struct crash_image){};
}

/* Read a whole file; behind its end there are zeroes. */
static int read_file(int fd, char *to, uint64_t capacity, uint64_t *ret_size)
{
        struct stat stat;

        if (fstat(fd, &stat) < 0)
                return -errno;
        if ((uint64_t)stat.st_size > capacity)
                return -EFBIG;
        for (uint64_t done = 0; done < (uint64_t)stat.st_size;) {
                ssize_t n = pread(fd, to + done, (uint64_t)stat.st_size - done, (off_t)done);

                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                done += (uint64_t)n;
        }
        memset(to + stat.st_size, 0, capacity - (uint64_t)stat.st_size);
        *ret_size = (uint64_t)stat.st_size;
        return 0;
}

int image_take_base(struct crash_image *image, const int *fds)
{
        int r = 0;

        for (unsigned i = 0; r >= 0 && i < image->count; i++)
                r = read_file(fds[i], image->files[i].base, image->capacity, &image->files[i].base_size);
        return r;
}

int image_look(struct crash_image *image)
{
        int r = 0;

        for (unsigned i = 0; r >= 0 && i < image->count; i++)
                r = read_file(image->files[i].fd, image->files[i].there, image->capacity,
                        &image->files[i].there_size);
        return r;
}

/* ---- what is there after a crash ---- */

/* Whether a flush has made it durable by then. */
static bool is_flushed(const struct record *record, const struct record_op *op, uint64_t moment)
{
        for (size_t i = 0; i < record->ordered; i++) {
                const struct record_op *flush = &record->ops[record->order[i]];

                if (flush->done > moment)
                        return false;
                if (flush->kind == RECORD_FLUSH && flush->file == op->file && op->done <= flush->begun)
                        return true;
        }
        return false;
}

static bool is_certain(
        const struct record *record, const struct record_op *op, enum crash_kind kind, uint64_t moment)
{
        if (op->done > moment)
                return false;
        return kind == CRASH_WORKER_DEATH || op->durable || is_flushed(record, op, moment);
}

/* Do a part of the operation to what was made. */
static void apply(struct crash_file *file, const struct record_op *op, uint64_t from, uint64_t length)
{
        uint64_t offset = op->offset + from, end = offset + length;

        if (op->kind == RECORD_WRITE) {
                memcpy(file->made + offset, op->data + from, length);
                file->made_size = end > file->made_size && length > 0 ? end : file->made_size;
        } else if (op->kind == RECORD_ZERO) { /* keeps the size */
                memset(file->made + offset, 0, length);
        } else if (op->kind == RECORD_RESIZE) {
                if (op->offset < file->made_size)
                        memset(file->made + op->offset, 0, file->made_size - op->offset);
                file->made_size = op->offset;
        }
}

static bool is_kept(const struct crash_fate *fate, uint64_t begun, uint64_t part)
{
        uint64_t drawn = crash_mix(fate->seed ^ crash_mix(begun << 20 ^ part));

        return fate->percent >= 100 || drawn % 100 < fate->percent;
}

/* Parts end at multiples of the grain in the file, as blocks do. */
static void apply_some(struct crash_file *file, const struct record_op *op, const struct crash_fate *fate)
{
        uint64_t grain = op->kind == RECORD_RESIZE ? 0 : fate->grain;

        if (grain == 0) {
                if (is_kept(fate, op->begun, 0))
                        apply(file, op, 0, op->length);
                return;
        }
        for (uint64_t from = 0, length; from < op->length; from += length) {
                uint64_t offset = op->offset + from;

                length = grain - offset % grain;
                length = length < op->length - from ? length : op->length - from;
                if (is_kept(fate, op->begun, offset / grain + 1))
                        apply(file, op, from, length);
        }
}

/* Return 1 if the operation was undecided, else 0. */
static unsigned apply_by_rule(struct crash_image *image, const struct record *record,
        const struct record_op *op, enum crash_kind kind, uint64_t moment, const struct crash_fate *fate)
{
        struct crash_file *file = &image->files[op->file];

        if (op->kind == RECORD_FLUSH || op->begun > moment)
                return 0;
        if (!is_certain(record, op, kind, moment)) {
                apply_some(file, op, fate);
                return 1;
        }
        apply(file, op, 0, op->length);
        return 0;
}

unsigned image_make(struct crash_image *image, const struct record *record, enum crash_kind kind,
        uint64_t moment, const struct crash_fate *fate)
{
        unsigned undecided = 0;

        for (unsigned i = 0; i < image->count; i++) {
                memcpy(image->files[i].made, image->files[i].base, image->capacity);
                image->files[i].made_size = image->files[i].base_size;
        }
        /* In the order in which they were done, also those that were done after the crash: where two meet, the
         * later one is above the earlier one. Then those that were never done. */
        for (size_t i = 0; i < record->ordered; i++)
                undecided += apply_by_rule(image, record, &record->ops[record->order[i]], kind, moment, fate);
        for (size_t i = 0; i < record->count; i++)
                if (record->ops[i].done == RECORD_NEVER)
                        undecided += apply_by_rule(image, record, &record->ops[i], kind, moment, fate);
        return undecided;
}

/* ---- files ---- */

/* Write the runs of sectors that differ. */
static int write_differences(const struct crash_file *file, uint64_t size)
{
        uint64_t begin = 0, end;

        for (; begin < size; begin = end) {
                bool differs = false;

                for (end = begin; end < size; end += CRASH_SECTOR) {
                        uint64_t length = size - end < CRASH_SECTOR ? size - end : CRASH_SECTOR;

                        differs = memcmp(file->made + end, file->there + end, length) != 0;
                        if (!differs && end == begin)
                                begin += CRASH_SECTOR;
                        else if (!differs)
                                break;
                }
                end = end < size ? end : size;
                if (begin < end && pwrite(file->fd, file->made + begin, end - begin, (off_t)begin) < 0)
                        return -errno;
        }
        return 0;
}

int image_write(struct crash_image *image)
{
        int changed = 0;

        for (unsigned i = 0; i < image->count; i++) {
                struct crash_file *file = &image->files[i];
                int r;

                if (file->made_size == file->there_size
                        && memcmp(file->made, file->there, image->capacity) == 0)
                        continue;
                if (file->made_size != file->there_size && ftruncate(file->fd, (off_t)file->made_size) < 0)
                        return -errno;
                r = write_differences(file, file->made_size);
                if (r < 0)
                        return r;
                memcpy(file->there, file->made, image->capacity);
                file->there_size = file->made_size;
                changed = 1;
        }
        return changed;
}

bool image_is(const struct crash_image *image, const int *fds)
{
        _cleanup_free_ char *bytes = malloc(image->capacity);
        bool same = bytes;

        for (unsigned i = 0; same && i < image->count; i++) {
                uint64_t size;

                same = read_file(fds[i], bytes, image->capacity, &size) >= 0
                       && size == image->files[i].made_size
                       && memcmp(bytes, image->files[i].made, image->capacity) == 0;
        }
        return same;
}
