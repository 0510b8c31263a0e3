/* SPDX-License-Identifier: MIT */
/* What the supervisor reads and writes of struct region_space. */
#include "ublkd/proto/region_space.h"

#include <errno.h>

#define TIME_MAX (UINT64_C(1) << 53) /* whole in every JSON number, and far from the last bit */

int region_space_read(int fd, struct region_space *ret)
{
        struct region_space space;
        int r = device_region_read_control(fd, offsetof(struct region_control, space), &space, sizeof(space));

        if (r < 0)
                return r;
        if (space.full_since > TIME_MAX)
                space.full_since = TIME_MAX;
        *ret = space;
        return 0;
}

int region_space_read_missed(int fd, uint64_t full_since, struct region_missed *ret)
{
        struct region_missed missed;
        int r = device_region_read_control(
                fd, offsetof(struct region_control, missed), &missed, sizeof(missed));

        if (r < 0)
                return r;
        if (full_since == 0 || missed.since != full_since || missed.op >= _STATS_OP_MAX || missed.error == 0)
                return -ENODATA;
        *ret = missed;
        return 0;
}

static int write_field(int fd, size_t offset, const void *value, size_t size)
{
        return device_region_write_control(fd, offsetof(struct region_control, space) + offset, value, size);
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
