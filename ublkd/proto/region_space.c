/* SPDX-License-Identifier: MIT */
/* What the supervisor reads and writes of struct region_space. */
#include "ublkd/proto/region_space.h"

#include <errno.h>
#include <unistd.h>

static int place_of(int fd, uint64_t *ret)
{
        struct device_region_header header;
        int r = device_region_read_header(fd, &header);

        if (r < 0)
                return r;
        *ret = header.section[REGION_CONTROL].offset + offsetof(struct region_control, space);
        return 0;
}

int region_space_read(int fd, struct region_space *ret)
{
        struct region_space space;
        uint64_t at;
        int r = place_of(fd, &at);
        ssize_t n;

        if (r < 0)
                return r;
        n = pread(fd, &space, sizeof(space), (off_t)at);
        if (n < 0)
                return -errno;
        if ((size_t)n != sizeof(space))
                return -ENODATA;
        *ret = space;
        return 0;
}

static int write_field(int fd, size_t offset, const void *value, size_t size)
{
        uint64_t at;
        int r = place_of(fd, &at);

        return r < 0 ? r : device_region_write(fd, at + offset, value, size);
}

int region_space_set_on_full(int fd, enum region_on_full on_full)
{
        const uint32_t value = on_full;

        return write_field(fd, offsetof(struct region_space, on_full), &value, sizeof(value));
}

int region_space_mark_reported(int fd, uint64_t full_since, bool waits)
{
        const uint32_t reported_waits = waits;
        int r = write_field(fd, offsetof(struct region_space, reported), &full_since, sizeof(full_since));

        return r < 0 ? r
                     : write_field(fd, offsetof(struct region_space, reported_waits), &reported_waits,
                               sizeof(reported_waits));
}
