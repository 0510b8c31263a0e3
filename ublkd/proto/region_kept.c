/* SPDX-License-Identifier: MIT */
/* The part of a region that belongs to the target. */
#include "ublkd/proto/region_kept.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/proto/region_faults.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

/* What a supervisor writes in one piece when it counts a restart. Killed at any moment, it has written both or none. */
struct counts {
        struct region_history history;
        uint64_t restarts; /* region_kept.restarts */
};
_Static_assert(offsetof(struct device_region_header, kept) + offsetof(struct region_kept, restarts)
                       == offsetof(struct device_region_header, history) + offsetof(struct counts, restarts),
        "the two lie together");
_Static_assert(sizeof(struct region_kept_head) <= REGION_KEPT_HEAD, "the target's bytes begin behind it");

static uint64_t area_size(uint64_t bytes)
{
        uint64_t size = bytes == 0 ? 0 : REGION_KEPT_HEAD + bytes;

        return (size + DEVICE_REGION_ALIGNMENT - 1) / DEVICE_REGION_ALIGNMENT * DEVICE_REGION_ALIGNMENT;
}

static bool is_wanted(const struct region_kept_wish *wish)
{
        return wish->disk_bytes > 0 || wish->queue_bytes > 0;
}

bool region_kept_is_allowed(const struct region_kept_wish *wish)
{
        return wish->disk_bytes <= REGION_KEPT_DISK_MAX && wish->queue_bytes <= REGION_KEPT_QUEUE_MAX
               && (!is_wanted(wish) || strlen(wish->target) < sizeof((struct region_kept){}.target));
}

uint64_t region_kept_size(const struct region_kept_wish *wish, unsigned queues)
{
        return area_size(wish->disk_bytes) + queues * area_size(wish->queue_bytes);
}

/* What the header says of kept memory, but for its seed. */
static struct region_kept kept_of(const struct region_kept_wish *wish)
{
        struct region_kept kept = {};

        if (!is_wanted(wish))
                return kept;
        kept.disk_bytes = wish->disk_bytes;
        kept.queue_bytes = wish->queue_bytes;
        kept.version = wish->version;
        memcpy(kept.target, wish->target, strlen(wish->target));
        return kept;
}

static uint64_t new_seed(void)
{
        uint64_t seed = 0;

        /* Early after the boot there may be no random numbers yet. Two memories that were made at the same time would
         * have to be taken for each other by other means to do harm. */
        if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
                seed = (uint64_t)clock_usec(CLOCK_REALTIME);
        return seed;
}

static int copy_bytes(int from, int to, uint64_t offset, uint64_t end)
{
        static char buffer[64 * 1024];

        while (offset < end) {
                size_t size = end - offset < sizeof(buffer) ? (size_t)(end - offset) : sizeof(buffer);
                ssize_t n = pread(from, buffer, size, (off_t)offset);
                int r;

                if (n < 0)
                        return -errno;
                if (n == 0) /* a worker has cut it off: what is gone counts from zero */
                        return 0;
                r = device_region_write(to, offset, buffer, (size_t)n);
                if (r < 0)
                        return r;
                offset += (uint64_t)n;
        }
        return 0;
}

static int take_over(int from, int to, const struct device_region_key *key, struct region_history *ret)
{
        struct device_region_header header;
        int r = from < 0 ? -ENODATA : device_region_read_header(from, &header);

        if (r < 0 || header.queues != key->queues || header.epoch != key->epoch)
                return 0; /* a region that begins from zero */
        (void)device_region_get_history(from, ret);
        return copy_bytes(from, to, header.section[REGION_CONTROL].offset, header.size);
}

static int read_kept(int fd, struct region_kept *ret)
{
        ssize_t n = pread(fd, ret, sizeof(*ret), offsetof(struct device_region_header, kept));

        if (n < 0)
                return -errno;
        return (size_t)n == sizeof(*ret) ? 0 : -ENODATA;
}

static bool holds(int fd, uint64_t size)
{
        struct stat st;

        return fstat(fd, &st) == 0 && st.st_size >= 0 && (uint64_t)st.st_size >= size;
}

/* Return whether the disk, which exists, loses what the worker before this one kept. A region from before kept memory
 * has none to lose: its header says nothing of it, and its file ends with the sections. Of a region that is gone or of
 * another kind, this is unknown. */
static bool loses(int from, const struct device_region_key *key, const struct region_kept_wish *wish)
{
        static const struct region_kept none;
        struct device_region_header header;
        struct region_kept kept;

        if (wish->new_disk)
                return false;
        if (from < 0 || device_region_read_header(from, &header) < 0 || header.queues != key->queues
                || header.epoch != key->epoch || read_kept(from, &kept) < 0)
                return is_wanted(wish);
        kept.lost = REGION_KEPT_WHOLE; /* that was before it */
        return memcmp(&kept, &none, sizeof(kept)) != 0 || holds(from, header.size + 1);
}

/* The device gets the file with the fault in it, or does not get it. */
static int latch_loss(int fd)
{
        const struct fault_report report = {
                .op = STATS_OTHER, .error = ENODATA, .at = clock_usec(CLOCK_REALTIME)};

        return region_fault_copy(fd, REGION_FAULT_FLUSH, &report);
}

int region_kept_format(
        int fd, const struct device_region_key *key, const struct region_kept_wish *wish, int from)
{
        struct region_history history = {};
        struct region_kept kept;
        bool lost = loses(from, key, wish);
        int r;

        if (!region_kept_is_allowed(wish))
                return -E2BIG;
        kept = kept_of(wish);
        kept.lost = lost ? REGION_KEPT_LOST : REGION_KEPT_WHOLE;
        if (is_wanted(wish))
                kept.seed = new_seed();
        r = device_region_allocate(fd, key, region_kept_size(wish, key->queues));
        if (r >= 0)
                r = take_over(from, fd, key, &history);
        if (is_wanted(wish))
                kept.restarts = history.restarts;
        if (r >= 0)
                r = device_region_write_header(fd, key, &history, &kept);
        return r >= 0 && lost ? latch_loss(fd) : r;
}

/* Return whether a supervisor that knows of kept memory has counted each start of a worker. */
static bool is_counted(int fd)
{
        struct counts counts;

        return pread(fd, &counts, sizeof(counts), offsetof(struct device_region_header, history))
                       == sizeof(counts)
               && counts.history.restarts == counts.restarts;
}

/* A worker may have written to the header: what it says is compared, and what it must be is what counts. */
static int check(int fd, const struct device_region_header *header, const struct region_kept_wish *wish,
        struct region_kept *ret)
{
        struct region_kept found, expected = kept_of(wish);
        int r = read_kept(fd, &found);

        if (r < 0)
                return r;
        expected.seed = found.seed;
        expected.restarts = found.restarts;
        expected.given = found.given;
        expected.taken = found.taken;
        expected.lost = found.lost;
        if (memcmp(&found, &expected, sizeof(found)) != 0 || (is_wanted(wish) && !is_counted(fd))
                || !holds(fd, header->size + region_kept_size(wish, header->queues)))
                return -EPROTO;
        *ret = found;
        return 0;
}

bool region_kept_fits(int fd, const struct device_region_key *key, const struct region_kept_wish *wish)
{
        struct device_region_header header;
        struct region_kept found;

        if (!region_kept_is_allowed(wish) || device_region_read_header(fd, &header) < 0)
                return false;
        if (header.queues != key->queues || header.epoch != key->epoch
                || check(fd, &header, wish, &found) < 0)
                return false;
        return !is_wanted(wish) || !wish->new_disk;
}

static int write_word(int fd, size_t offset, uint32_t word)
{
        return device_region_write(
                fd, offsetof(struct device_region_header, kept) + offset, &word, sizeof(word));
}

int region_kept_give(int fd)
{
        struct region_kept kept;
        int r = read_kept(fd, &kept);

        /* Another number than the one that was taken, whatever a worker has written. */
        return r < 0 ? r : write_word(fd, offsetof(struct region_kept, given), kept.taken + 1);
}

int region_kept_take(int fd)
{
        struct region_kept kept;
        int r = read_kept(fd, &kept);

        if (r < 0)
                return r;
        return kept.given == kept.taken ? -EPROTO
                                        : write_word(fd, offsetof(struct region_kept, taken), kept.given);
}

int region_kept_is_taken(int fd)
{
        struct region_kept kept;
        int r = read_kept(fd, &kept);

        return r < 0 ? r : kept.given == kept.taken;
}

int region_kept_has_new_loss(int fd, uint64_t *ret_loss)
{
        struct region_kept kept;
        int r = read_kept(fd, &kept);

        if (r < 0)
                return r;
        *ret_loss = kept.seed;
        return kept.lost == REGION_KEPT_LOST;
}

int region_kept_note_reported(int fd)
{
        return write_word(fd, offsetof(struct region_kept, lost), REGION_KEPT_LOSS_REPORTED);
}

int region_kept_count_restart(int fd, const struct region_history *history)
{
        const struct counts counts = {.history = *history, .restarts = history->restarts};

        return device_region_write(
                fd, offsetof(struct device_region_header, history), &counts, sizeof(counts));
}

int region_kept_read_bytes(int fd, uint64_t *ret)
{
        struct device_region_header header;
        struct region_kept kept;
        int r = device_region_read_header(fd, &header);

        if (r >= 0)
                r = read_kept(fd, &kept);
        if (r < 0)
                return r;
        if (kept.disk_bytes > REGION_KEPT_DISK_MAX || kept.queue_bytes > REGION_KEPT_QUEUE_MAX)
                kept = (struct region_kept){};
        *ret = kept.disk_bytes + header.queues * kept.queue_bytes;
        return 0;
}

int region_kept_map(int fd, unsigned queues, const struct region_kept_wish *wish, struct region_kept_map *ret)
{
        struct device_region_header header;
        struct region_kept found;
        char *base;
        int r;

        if (!is_wanted(wish)) {
                *ret = (struct region_kept_map){};
                return 0;
        }
        r = region_kept_is_allowed(wish) ? device_region_read_header(fd, &header) : -E2BIG;
        if (r >= 0 && header.queues != queues)
                r = -EINVAL;
        if (r >= 0)
                r = check(fd, &header, wish, &found);
        if (r < 0)
                return r;
        /* From the beginning of the file on: a page may be larger than the alignment of sections. */
        base = mmap(NULL, header.size + region_kept_size(wish, queues), PROT_READ | PROT_WRITE, MAP_SHARED,
                fd, 0);
        if (base == MAP_FAILED)
                return -errno;
        *ret = (struct region_kept_map){
                .base = base + header.size,
                .disk_bytes = wish->disk_bytes,
                .queue_bytes = wish->queue_bytes,
                .seed = found.seed,
                .lost = found.lost != REGION_KEPT_WHOLE,
        };
        return 0;
}

struct region_kept_head *region_kept_disk(const struct region_kept_map *map)
{
        return map->disk_bytes > 0 ? (struct region_kept_head *)map->base : NULL;
}

struct region_kept_head *region_kept_queue(const struct region_kept_map *map, unsigned queue)
{
        if (map->queue_bytes == 0)
                return NULL;
        return (struct region_kept_head *)(map->base + area_size(map->disk_bytes)
                                           + queue * area_size(map->queue_bytes));
}
