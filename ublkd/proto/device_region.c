/* SPDX-License-Identifier: MIT */
/* The memory of a device that outlives its worker. */
#include "ublkd/proto/device_region.h"
#include "ublkd/base/cleanup.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

_Static_assert(sizeof(struct device_region_header) <= DEVICE_REGION_ALIGNMENT, "sections begin behind it");
_Static_assert(
        (int)_REGION_SECTION_MAX <= (int)DEVICE_REGION_SECTIONS_MAX, "the header has room for every section");

#define HISTORY_MAX (UINT64_C(1) << 53) /* whole in every JSON number */

static const char *const ops[] = {
        [STATS_READ] = "read",
        [STATS_WRITE] = "write",
        [STATS_FLUSH] = "flush",
        [STATS_DISCARD] = "discard",
        [STATS_WRITE_ZEROES] = "write_zeroes",
        [STATS_OTHER] = "other",
};
_Static_assert(ARRAY_SIZE(ops) == _STATS_OP_MAX, "every operation has a name");

const char *stats_op_to_string(enum stats_op op)
{
        assert((unsigned)op < ARRAY_SIZE(ops));
        return ops[op];
}

static const char *const errno_names[] = {
        [REGION_ERRNO_EIO] = "EIO",
        [REGION_ERRNO_ENOSPC] = "ENOSPC",
        [REGION_ERRNO_EROFS] = "EROFS",
        [REGION_ERRNO_EOPNOTSUPP] = "EOPNOTSUPP",
        [REGION_ERRNO_ENOMEM] = "ENOMEM",
        [REGION_ERRNO_ETIMEDOUT] = "ETIMEDOUT",
        [REGION_ERRNO_EINVAL] = "EINVAL",
        [REGION_ERRNO_OTHER] = "other",
};
_Static_assert(ARRAY_SIZE(errno_names) == _REGION_ERRNO_MAX, "every error has a name");

const char *region_errno_to_string(enum region_errno error)
{
        assert((unsigned)error < ARRAY_SIZE(errno_names));
        return errno_names[error];
}

static size_t align(size_t size)
{
        return (size + DEVICE_REGION_ALIGNMENT - 1) / DEVICE_REGION_ALIGNMENT * DEVICE_REGION_ALIGNMENT;
}

size_t device_region_stats_stride(void)
{
        /* Another stride is another version: an older worker goes on counting in this region. */
        _Static_assert(sizeof(struct queue_stats) > 5 * DEVICE_REGION_ALIGNMENT
                               && sizeof(struct queue_stats) <= 6 * DEVICE_REGION_ALIGNMENT,
                "the stride of version 1");
        return align(sizeof(struct queue_stats));
}

/* Another size is another version: the section of the statistics would begin elsewhere. */
_Static_assert(sizeof(struct region_control) <= DEVICE_REGION_ALIGNMENT, "the control section of version 1");

static size_t section_size(enum device_region_section section, unsigned queues)
{
        switch (section) {
        case REGION_CONTROL:
                return sizeof(struct region_control);
        case REGION_STATS:
                return device_region_stats_stride() * queues;
        case _REGION_SECTION_MAX:
                break;
        }
        return 0;
}

/* The header that a region of this version has for `key`: the same for the same key. */
static struct device_region_header layout(const struct device_region_key *key)
{
        struct device_region_header header = {
                .magic = DEVICE_REGION_MAGIC,
                .version = DEVICE_REGION_VERSION,
                .queues = key->queues,
                .epoch = key->epoch,
                .sections = _REGION_SECTION_MAX,
                .size = align(sizeof(header)),
        };

        for (unsigned i = 0; i < _REGION_SECTION_MAX; i++) {
                header.section[i].offset = header.size;
                header.section[i].size = align(section_size((enum device_region_section)i, key->queues));
                header.size += header.section[i].size;
        }
        return header;
}

int device_region_allocate(int fd, const struct device_region_key *key, uint64_t more)
{
        if (key->queues == 0 || key->queues > DEVICE_REGION_QUEUES_MAX)
                return -EINVAL;
        return -posix_fallocate(fd, 0, (off_t)(layout(key).size + more));
}

int device_region_write_header(int fd, const struct device_region_key *key,
        const struct region_history *history, const struct region_kept *kept)
{
        struct device_region_header header = layout(key);
        ssize_t n;

        header.history = *history;
        header.kept = *kept;
        n = pwrite(fd, &header, sizeof(header), 0);
        if (n < 0)
                return -errno;
        return (size_t)n == sizeof(header) ? 0 : -ENOSPC;
}

/* The header is written last: a file without it is not a region. */
int device_region_format(int fd, const struct device_region_key *key)
{
        int r = device_region_allocate(fd, key, 0);

        return r < 0 ? r
                     : device_region_write_header(
                               fd, key, &(struct region_history){}, &(struct region_kept){});
}

static bool headers_equal(const struct device_region_header *one, const struct device_region_header *other)
{
        bool equal = one->queues == other->queues && one->epoch == other->epoch
                     && one->sections == other->sections && one->size == other->size;

        for (unsigned i = 0; equal && i < _REGION_SECTION_MAX; i++)
                equal = one->section[i].offset == other->section[i].offset
                        && one->section[i].size == other->section[i].size;
        return equal;
}

/* Read where the sections are, which may lie beyond the end of the file. The test of errno is for GCC with -O3, which
 * else warns of an uninitialised header: it does not know that errno is positive after a failure. */
static int read_layout(int fd, struct device_region_header *ret)
{
        struct device_region_header header, expected;
        ssize_t n = pread(fd, &header, sizeof(header), 0);

        if (n < 0)
                return errno > 0 ? -errno : -EIO;
        if ((size_t)n != sizeof(header) || header.magic != DEVICE_REGION_MAGIC)
                return -ENODATA;
        if (header.version != DEVICE_REGION_VERSION)
                return -EPROTO;
        if (header.queues == 0 || header.queues > DEVICE_REGION_QUEUES_MAX || header.epoch > UINT16_MAX)
                return -ENODATA;
        /* A worker may have written to it: nothing in it leads anywhere but where we would have put it. */
        expected =
                layout(&(struct device_region_key){.queues = header.queues, .epoch = (uint16_t)header.epoch});
        if (!headers_equal(&header, &expected))
                return -ENODATA;
        *ret = expected;
        return 0;
}

int device_region_read_header(int fd, struct device_region_header *ret)
{
        struct device_region_header header;
        struct stat st;
        int r = read_layout(fd, &header);

        if (r < 0)
                return r;
        if (fstat(fd, &st) < 0)
                return errno > 0 ? -errno : -EIO;
        if (st.st_size < (off_t)header.size)
                return -ENODATA;
        *ret = header;
        return 0;
}

int device_region_write(int fd, uint64_t offset, const void *data, size_t size)
{
        ssize_t n = pwrite(fd, data, size, (off_t)offset);

        if (n < 0)
                return -errno;
        return (size_t)n == size ? 0 : -EIO;
}

/* What is read shows by itself whether it is in the file. */
int device_region_read_control_of(int fd, size_t offset, void *buffer, size_t size, uint32_t *ret_epoch)
{
        struct device_region_header header;
        int r = read_layout(fd, &header);
        ssize_t n;

        if (r < 0)
                return r;
        n = pread(fd, buffer, size, (off_t)(header.section[REGION_CONTROL].offset + offset));
        if (n < 0)
                return -errno;
        if ((size_t)n != size)
                return -ENODATA;
        *ret_epoch = header.epoch;
        return 0;
}

int device_region_read_control(int fd, size_t offset, void *buffer, size_t size)
{
        uint32_t epoch;

        return device_region_read_control_of(fd, offset, buffer, size, &epoch);
}

int device_region_write_control(int fd, size_t offset, const void *data, size_t size)
{
        struct device_region_header header;
        int r = device_region_read_header(fd, &header);

        return r < 0 ? r
                     : device_region_write(fd, header.section[REGION_CONTROL].offset + offset, data, size);
}

int device_region_set_history(int fd, const struct region_history *history)
{
        struct device_region_header header;
        int r = device_region_read_header(fd, &header);

        return r < 0 ? r
                     : device_region_write(
                               fd, offsetof(struct device_region_header, history), history, sizeof(*history));
}

int device_region_get_history(int fd, struct region_history *ret)
{
        struct device_region_header header;
        struct region_history history;
        int r = device_region_read_header(fd, &header);
        ssize_t n;

        if (r < 0)
                return r;
        n = pread(fd, &history, sizeof(history), offsetof(struct device_region_header, history));
        if (n < 0)
                return -errno;
        if ((size_t)n != sizeof(history))
                return -ENODATA;
        /* A worker may have written to it: a value that is not a time, or not a count that JSON can hold, is ignored.
         */
        if (!(history.last_recovery_ms >= 0 && history.last_recovery_ms <= HISTORY_MAX)
                || history.restarts > HISTORY_MAX || history.recoveries > HISTORY_MAX)
                return -ENODATA;
        *ret = history;
        return 0;
}

int device_region_map(int fd, unsigned queues, void **ret_base)
{
        struct device_region_header header;
        void *base;
        int r = device_region_read_header(fd, &header);

        if (r < 0)
                return r;
        if (header.queues != queues)
                return -EINVAL;
        base = mmap(NULL, header.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (base == MAP_FAILED)
                return -errno;
        *ret_base = base;
        return 0;
}

struct queue_stats *device_region_queue_stats(void *base, unsigned queue)
{
        const struct device_region_header *header = base;

        assert(queue < header->queues);
        return (struct queue_stats *)((char *)base + header->section[REGION_STATS].offset
                                      + queue * device_region_stats_stride());
}

struct region_control *device_region_control(const void *base)
{
        const struct device_region_header *header = base;

        return (struct region_control *)((char *)(uintptr_t)base + header->section[REGION_CONTROL].offset);
}

uint64_t *device_region_bucket(void *base, enum region_direction direction, enum region_bucket bucket)
{
        return &device_region_control(base)->buckets[direction][bucket].paid_until;
}

int device_region_set_values(int fd, const struct region_values *values)
{
        struct device_region_header header;
        struct region_control control;
        uint64_t at;
        int r = device_region_read_header(fd, &header);

        if (r < 0)
                return r;
        at = header.section[REGION_CONTROL].offset;
        if (pread(fd, &control, sizeof(control), (off_t)at) != (ssize_t)sizeof(control))
                return -ENODATA;
        if (control.sequence > 0 && control.sequence % 2 == 0
                && memcmp(&control.values, values, sizeof(*values)) == 0)
                return 0;
        control.sequence |= 1; /* odd already where a supervisor died at it */
        r = device_region_write(fd, at, &control.sequence, sizeof(control.sequence));
        if (r >= 0)
                r = device_region_write(
                        fd, at + offsetof(struct region_control, values), values, sizeof(*values));
        control.sequence++;
        if (control.sequence == 0) /* 0 is "none" */
                control.sequence = 2;
        if (r >= 0)
                r = device_region_write(fd, at, &control.sequence, sizeof(control.sequence));
        return r < 0 ? r : 1;
}

uint32_t device_region_sequence(const void *base)
{
        return __atomic_load_n(&device_region_control(base)->sequence, __ATOMIC_ACQUIRE);
}

bool device_region_get_values(const void *base, uint32_t *ret_sequence, struct region_values *ret)
{
        const struct region_control *control = device_region_control(base);
        uint32_t sequence = device_region_sequence(base);
        struct region_values values = control->values;

        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (sequence % 2 != 0 || device_region_sequence(base) != sequence)
                return false;
        *ret_sequence = sequence;
        *ret = values;
        return true;
}
