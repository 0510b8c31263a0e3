/* SPDX-License-Identifier: MIT */
/* The file has the id of the boot, and a line for each range since then, the one in force last. Two ranges exclude each other
 * if they overlap and begin at different uids. Ranges are dropped when no worker is left. */
#include "ublkd/workers/worker_uids.h"

#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <systemd/sd-id128.h>
#include <unistd.h>

enum { RANGES_MAX = 16, TEXT_SIZE = 512 };

struct range {
        uint32_t first, users;
};

struct ranges {
        struct range of[RANGES_MAX];
        size_t count;
        char boot[SD_ID128_STRING_MAX];
};

static int this_boot(struct ranges *ranges)
{
        sd_id128_t boot;
        int r = sd_id128_get_boot(&boot);

        if (r >= 0)
                (void)sd_id128_to_string(boot, ranges->boot);
        return r;
}

/* Those of another boot, and of a file that was cut off, are none: no worker can have them. */
static int read_ranges(int fd, struct ranges *ranges)
{
        char text[TEXT_SIZE];
        ssize_t size = pread(fd, text, sizeof(text) - 1, 0);
        const char *at = text;
        struct range range;
        int end;

        if (size < 0)
                return -errno;
        text[size] = '\0';
        if (strncmp(text, ranges->boot, strlen(ranges->boot)) != 0)
                return 0;
        at += strlen(ranges->boot);
        while (ranges->count < RANGES_MAX
                && sscanf(at, " %" SCNu32 " %" SCNu32 "%n", &range.first, &range.users, &end) == 2) {
                ranges->of[ranges->count++] = range;
                at += end;
        }
        return 0;
}

static int write_ranges(int fd, const struct ranges *ranges)
{
        char text[TEXT_SIZE];
        size_t size = (size_t)snprintf(text, sizeof(text), "%s\n", ranges->boot);

        for (size_t i = 0; i < ranges->count; i++)
                size += (size_t)snprintf(text + size, sizeof(text) - size, "%" PRIu32 " %" PRIu32 "\n",
                        ranges->of[i].first, ranges->of[i].users);
        if (pwrite(fd, text, size, 0) != (ssize_t)size || ftruncate(fd, (off_t)size) < 0)
                return errno > 0 ? -errno : -EIO;
        return 0;
}

static int find_worker(void *userdata, const char *uid)
{
        return runtime_dir_has_worker(userdata, uid) ? -EEXIST : 0;
}

static bool excludes(const struct range *one, const struct range *other)
{
        return one->first != other->first && one->first < (uint64_t)other->first + other->users
               && other->first < (uint64_t)one->first + one->users;
}

static bool is_free(const struct ranges *ranges, const struct range *wanted)
{
        for (size_t i = 0; i < ranges->count; i++)
                if (excludes(&ranges->of[i], wanted))
                        return false;
        return true;
}

static bool is_noted(const struct ranges *ranges, const struct range *wanted)
{
        for (size_t i = 0; i < ranges->count; i++)
                if (memcmp(&ranges->of[i], wanted, sizeof(*wanted)) == 0)
                        return true;
        return false;
}

/* Put the range at the end. */
static void add(struct ranges *ranges, const struct range *range)
{
        size_t kept = 0;

        for (size_t i = 0; i < ranges->count; i++)
                if (memcmp(&ranges->of[i], range, sizeof(*range)) != 0)
                        ranges->of[kept++] = ranges->of[i];
        ranges->of[kept++] = *range;
        ranges->count = kept;
}

int worker_uids_choose(struct runtime_dir *dir, struct worker_confinement *confinement)
{
        const struct range wanted = {confinement->first_user, confinement->users};
        _cleanup_close_ int fd = runtime_dir_open_uids(dir);
        struct ranges ranges = {};
        int r = fd < 0 ? fd : this_boot(&ranges);

        if (r >= 0)
                r = read_ranges(fd, &ranges);
        if (r < 0)
                return r;
        if (runtime_dir_each_record(dir, find_worker, dir) == 0)
                ranges.count = 0;
        if (!is_free(&ranges, &wanted) || (ranges.count == RANGES_MAX && !is_noted(&ranges, &wanted))) {
                confinement->first_user = ranges.of[ranges.count - 1].first;
                confinement->users = ranges.of[ranges.count - 1].users;
                return 1;
        }
        add(&ranges, &wanted);
        return write_ranges(fd, &ranges);
}
