/* SPDX-License-Identifier: MIT */
/* Limits as the kernel writes them: Documentation/admin-guide/cgroup-v2.rst. */
#include "ublkd/cgroups/group_limits.h"

#include "ublkd/base/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

static const struct {
        const char *file, *controller, *field;
        const char *none; /* what the file has without a limit */
        size_t offset;    /* of the number in struct group_limits; not of GROUP_IO_MAX */
} table[] = {
        [GROUP_CPU_WEIGHT] = {"cpu.weight", "cpu", "cpuWeight", "100",
                              offsetof(struct group_limits, cpu_weight)},
        [GROUP_MEMORY_MAX] = {"memory.max", "memory", "memoryMax", "max",
                              offsetof(struct group_limits, memory_max)},
        [GROUP_IO_MAX] = {"io.max", "io", "ioMax", NULL, 0},
        [GROUP_PIDS_MAX] = {"pids.max", "pids", "pidsMax", "max", offsetof(struct group_limits, pids_max)},
};
static_assert(ARRAY_SIZE(table) == _GROUP_LIMIT_MAX, "every limit has a row");

static uint64_t number_of(const struct group_limits *limits, enum group_limit which)
{
        uint64_t number;

        memcpy(&number, (const char *)limits + table[which].offset, sizeof(number));
        return number;
}

static bool io_is_set(const struct group_io_limits *io)
{
        return io->read_bytes > 0 || io->read_ios > 0 || io->write_bytes > 0 || io->write_ios > 0;
}

bool group_limit_is_set(const struct group_limits *limits, enum group_limit which)
{
        return which == GROUP_IO_MAX ? io_is_set(&limits->io) : number_of(limits, which) > 0;
}

bool group_limits_any(const struct group_limits *limits)
{
        for (unsigned i = 0; i < _GROUP_LIMIT_MAX; i++)
                if (group_limit_is_set(limits, (enum group_limit)i))
                        return true;
        return false;
}

bool group_limit_is_bound(enum group_limit which)
{
        return which == GROUP_MEMORY_MAX || which == GROUP_PIDS_MAX;
}

bool group_limits_bound(const struct group_limits *limits)
{
        for (unsigned i = 0; i < _GROUP_LIMIT_MAX; i++)
                if (group_limit_is_bound((enum group_limit)i)
                        && group_limit_is_set(limits, (enum group_limit)i))
                        return true;
        return false;
}

static bool io_equal(const struct group_io_limits *one, const struct group_io_limits *other)
{
        return one->read_bytes == other->read_bytes && one->read_ios == other->read_ios
               && one->write_bytes == other->write_bytes && one->write_ios == other->write_ios;
}

bool group_limits_equal(const struct group_limits *one, const struct group_limits *other)
{
        return one->cpu_weight == other->cpu_weight && one->memory_max == other->memory_max
               && one->pids_max == other->pids_max && one->disk == other->disk
               && io_equal(&one->io, &other->io);
}

const char *group_limit_file(enum group_limit which)
{
        assert(which < _GROUP_LIMIT_MAX);
        return table[which].file;
}

const char *group_limit_controller(enum group_limit which)
{
        assert(which < _GROUP_LIMIT_MAX);
        return table[which].controller;
}

const char *group_limit_field(enum group_limit which)
{
        assert(which < _GROUP_LIMIT_MAX);
        return table[which].field;
}

/* Append " KEY=NUMBER", or " KEY=max" for 0. */
static void add_rate(char text[static GROUP_LIMIT_TEXT_SIZE], const char *key, uint64_t number)
{
        size_t used = strlen(text);

        if (number > 0)
                snprintf(text + used, GROUP_LIMIT_TEXT_SIZE - used, " %s=%" PRIu64, key, number);
        else
                snprintf(text + used, GROUP_LIMIT_TEXT_SIZE - used, " %s=max", key);
}

static void io_text(dev_t disk, const struct group_io_limits *io, char text[static GROUP_LIMIT_TEXT_SIZE])
{
        snprintf(text, GROUP_LIMIT_TEXT_SIZE, "%u:%u", major(disk), minor(disk));
        add_rate(text, "rbps", io->read_bytes);
        add_rate(text, "wbps", io->write_bytes);
        add_rate(text, "riops", io->read_ios);
        add_rate(text, "wiops", io->write_ios);
}

void group_io_none_text(dev_t disk, char text[static GROUP_LIMIT_TEXT_SIZE])
{
        io_text(disk, &(const struct group_io_limits){}, text);
}

int group_limit_text(
        const struct group_limits *limits, enum group_limit which, char text[static GROUP_LIMIT_TEXT_SIZE])
{
        assert(which < _GROUP_LIMIT_MAX);
        if (which == GROUP_IO_MAX) {
                if (limits->disk == 0)
                        return -ENODEV;
                io_text(limits->disk, &limits->io, text);
        } else if (number_of(limits, which) > 0)
                snprintf(text, GROUP_LIMIT_TEXT_SIZE, "%" PRIu64, number_of(limits, which));
        else
                snprintf(text, GROUP_LIMIT_TEXT_SIZE, "%s", table[which].none);
        return 0;
}
