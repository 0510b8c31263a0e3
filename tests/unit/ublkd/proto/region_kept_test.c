/* SPDX-License-Identifier: MIT */
/* Kept memory in the region: found again as it was left, never taken for that of another disk, target or version, and
 * within its bounds whatever a worker has written. A program without it uses the same region, and the other way round. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/proto/kept_region.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/proto/region_kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int new_region(const struct region_kept_wish *wish)
{
        int fd = new_file();

        CHECK_INT(region_kept_format(fd, &key, wish, -1), 0);
        return fd;
}

static char *bytes_of(struct region_kept_head *head)
{
        return (char *)head + REGION_KEPT_HEAD;
}

static struct region_kept_map map_of(int fd)
{
        struct region_kept_map map = {};

        CHECK_INT(region_kept_map(fd, QUEUES, &some, &map), 0);
        return map;
}

/* Fill all of it, as a worker may. */
static void fill(int fd)
{
        struct region_kept_map map = map_of(fd);

        memset(bytes_of(region_kept_disk(&map)), 'd', DISK_BYTES);
        region_kept_disk(&map)->settled = 1;
        for (unsigned i = 0; i < QUEUES; i++) {
                memset(bytes_of(region_kept_queue(&map, i)), 'q', QUEUE_BYTES);
                region_kept_queue(&map, i)->settled = 1;
        }
}

static bool all_are(const char *bytes, size_t size, char wanted)
{
        for (size_t i = 0; i < size; i++)
                if (bytes[i] != wanted)
                        return false;
        return true;
}

static bool is_filled(int fd)
{
        struct region_kept_map map = map_of(fd);
        bool filled = all_are(bytes_of(region_kept_disk(&map)), DISK_BYTES, 'd');

        for (unsigned i = 0; i < QUEUES; i++)
                filled = filled && all_are(bytes_of(region_kept_queue(&map, i)), QUEUE_BYTES, 'q');
        return filled;
}

static bool is_zeroed(int fd)
{
        struct region_kept_map map = map_of(fd);
        bool zeroed = all_are((char *)region_kept_disk(&map), REGION_KEPT_HEAD + DISK_BYTES, 0);

        for (unsigned i = 0; i < QUEUES; i++)
                zeroed = zeroed
                         && all_are((char *)region_kept_queue(&map, i), REGION_KEPT_HEAD + QUEUE_BYTES, 0);
        return zeroed;
}

static uint64_t rounds_of(int fd)
{
        void *base;

        CHECK_INT(device_region_map(fd, QUEUES, &base), 0);
        return device_region_queue_stats(base, 2)->rounds;
}

static void set_rounds(int fd, uint64_t rounds)
{
        void *base;

        CHECK_INT(device_region_map(fd, QUEUES, &base), 0);
        device_region_queue_stats(base, 2)->rounds = rounds;
}

static void test_the_next_worker_finds_it(void)
{
        int fd = new_region(&some);
        uint64_t seed = map_of(fd).seed, bytes = 0;
        struct stat st;

        CHECK(is_zeroed(fd));
        fill(fd);
        CHECK(region_kept_fits(fd, &key, &some));
        CHECK(is_filled(fd));
        CHECK_INT(map_of(fd).seed, seed);
        CHECK_INT(region_kept_read_bytes(fd, &bytes), 0);
        CHECK_INT(bytes, DISK_BYTES + QUEUES * QUEUE_BYTES);
        CHECK_INT(fstat(fd, &st), 0);
        CHECK((uint64_t)st.st_blocks * 512 >= (uint64_t)st.st_size); /* no store can raise SIGBUS */
        close(fd);
}

static void test_areas_are_apart(void)
{
        int fd = new_region(&some);
        struct region_kept_map map = map_of(fd);
        char *end = (char *)region_kept_disk(&map);

        for (unsigned i = 0; i < QUEUES; i++) {
                char *area = (char *)region_kept_queue(&map, i);

                CHECK_INT((uintptr_t)area % REGION_KEPT_HEAD, 0);
                CHECK(area >= end);
                end = area + REGION_KEPT_HEAD + QUEUE_BYTES;
        }
        CHECK(end <= map.base + region_kept_size(&some, QUEUES));
        close(fd);
}

/* Where the target wants only one kind. */
static void test_one_kind(void)
{
        const struct region_kept_wish disk = {.target = "t", .disk_bytes = 1},
                                      queue = {.target = "t", .queue_bytes = 1};
        struct region_kept_map map;
        int fd = new_region(&disk);

        CHECK_INT(region_kept_map(fd, QUEUES, &disk, &map), 0);
        CHECK(region_kept_disk(&map) && !region_kept_queue(&map, 0));
        close(fd);
        fd = new_region(&queue);
        CHECK_INT(region_kept_map(fd, QUEUES, &queue, &map), 0);
        CHECK(!region_kept_disk(&map) && region_kept_queue(&map, 0));
        close(fd);
}

/* Nothing more than before for a target that keeps nothing. */
static void test_none(void)
{
        struct region_kept_map map = {.base = (char *)1};
        struct device_region_header header;
        int fd = new_region(&none), before = new_file();
        uint64_t bytes = 1;
        struct stat st;

        CHECK_INT(device_region_read_header(fd, &header), 0);
        CHECK_INT(fstat(fd, &st), 0);
        CHECK_INT(st.st_size, header.size);
        CHECK_INT(region_kept_map(fd, QUEUES, &none, &map), 0);
        CHECK(!map.base && !region_kept_disk(&map) && !region_kept_queue(&map, 0));
        CHECK_INT(region_kept_read_bytes(fd, &bytes), 0);
        CHECK_INT(bytes, 0);
        CHECK_INT(device_region_format(before, &key), 0);
        CHECK(region_kept_fits(before, &key, &none));
        close(before);
        close(fd);
}

/* Statistics are of the device, and what is kept is of the target. */
static void test_another_layout_begins_with_zeroes(void)
{
        static const struct region_kept_wish others[] = {
                {"keeping", DISK_BYTES,     QUEUE_BYTES,     2, false},
                {"keeping", DISK_BYTES + 1, QUEUE_BYTES,     1, false},
                {"keeping", DISK_BYTES,     QUEUE_BYTES - 1, 1, false},
                {"keepin",  DISK_BYTES,     QUEUE_BYTES,     1, false},
                {"keeping", DISK_BYTES,     QUEUE_BYTES,     1, true },
                {"keeping", 0,              0,               0, false},
        };

        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                int before = new_region(&some), fd = new_file();
                struct region_kept_map map = {};
                uint64_t seed = map_of(before).seed;

                fill(before);
                set_rounds(before, 4711);
                CHECK(!region_kept_fits(before, &key, &others[i]));
                if (!others[i].new_disk && others[i].version > 0)
                        CHECK_INT(region_kept_map(before, QUEUES, &others[i], &map), -EPROTO);
                CHECK_INT(region_kept_format(fd, &key, &others[i], before), 0);
                CHECK(others[i].new_disk || region_kept_fits(fd, &key, &others[i]));
                CHECK_INT(rounds_of(fd), 4711);
                CHECK_INT(region_kept_map(fd, QUEUES, &others[i], &map), 0);
                if (others[i].version > 0) {
                        CHECK(all_are(
                                (char *)region_kept_disk(&map), REGION_KEPT_HEAD + others[i].disk_bytes, 0));
                        CHECK(all_are((char *)region_kept_queue(&map, 2),
                                REGION_KEPT_HEAD + others[i].queue_bytes, 0));
                        CHECK(map.seed != seed);
                }
                CHECK(is_filled(before)); /* a process that has it mapped */
                close(before);
                close(fd);
        }
}

static void test_another_region_begins_with_zeroes(void)
{
        static const struct device_region_key others[] = {
                {.queues = QUEUES,     .epoch = 8},
                {.queues = QUEUES - 1, .epoch = 7}
        };

        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                int before = new_region(&some), fd = new_file();
                struct device_region_header header;
                struct region_kept_map map;
                void *base;

                fill(before);
                set_rounds(before, 4711);
                CHECK(!region_kept_fits(before, &others[i], &some));
                CHECK_INT(region_kept_format(fd, &others[i], &some, before), 0);
                CHECK_INT(device_region_read_header(fd, &header), 0);
                CHECK_INT(header.epoch, others[i].epoch);
                CHECK_INT(device_region_map(fd, others[i].queues, &base), 0);
                CHECK_INT(device_region_queue_stats(base, 1)->rounds, 0);
                CHECK_INT(region_kept_map(fd, others[i].queues, &some, &map), 0);
                CHECK(all_are((char *)region_kept_disk(&map), REGION_KEPT_HEAD + DISK_BYTES, 0));
                close(before);
                close(fd);
        }
}

/* ---- a program from before there was kept memory ---- */

/* Its header, and what it looks at. */
struct old_header {
        uint64_t magic;
        uint32_t version, queues, epoch, sections;
        uint64_t size;
        struct {
                uint64_t offset, size;
        } section[8];
        struct {
                uint64_t restarts, recoveries;
                double last_recovery_ms;
        } history;
};

static struct old_header old_layout(void)
{
        const uint64_t stats = UINT64_C(6) * 4096 * QUEUES;

        return (struct old_header){
                .magic = UINT64_C(0x6e6772646b6c6275),
                .version = 1,
                .queues = QUEUES,
                .epoch = 7,
                .sections = 2,
                .size = 4096 + 4096 + stats,
                .section = {{4096, 4096}, {8192, stats}},
        };
}

/* It serves the disk, adopted, and leaves what is kept alone. */
static void test_an_older_program_adopts_it(void)
{
        const struct old_header expected = old_layout();
        struct old_header header;
        int fd = new_region(&some);
        struct region_history history = {};
        struct stat st;

        fill(fd);
        CHECK_INT(pread(fd, &header, sizeof(header), 0), sizeof(header));
        CHECK_INT(memcmp(&header, &expected, sizeof(header)), 0);
        CHECK_INT(fstat(fd, &st), 0);
        CHECK((uint64_t)st.st_size >= expected.size);
        /* It counts a recovery, and the program after it finds all that was kept. */
        header.history.recoveries = 5;
        CHECK_INT(pwrite(fd, &header.history, sizeof(header.history), offsetof(struct old_header, history)),
                sizeof(header.history));
        CHECK_INT(device_region_get_history(fd, &history), 0);
        CHECK_INT(history.recoveries, 5);
        CHECK(region_kept_fits(fd, &key, &some));
        CHECK(is_filled(fd));
        close(fd);
}

/* Its worker has changed the disk without changing what is kept, which would be replayed over that. */
static void test_a_worker_of_an_older_program_has_served(void)
{
        struct region_history history = {.restarts = 5};
        struct region_kept_map map;
        int fd = new_region(&some), next = new_file();

        fill(fd);
        CHECK_INT(region_kept_count_restart(fd, &history), 0);
        CHECK_INT(device_region_get_history(fd, &history), 0);
        CHECK_INT(history.restarts, 5);
        CHECK(region_kept_fits(fd, &key, &some));
        history.recoveries++;
        CHECK_INT(device_region_set_history(fd, &history), 0);
        CHECK(region_kept_fits(fd, &key, &some));
        history.restarts++;
        CHECK_INT(device_region_set_history(fd, &history), 0); /* as the older one counts */
        CHECK(!region_kept_fits(fd, &key, &some));
        CHECK_INT(region_kept_map(fd, QUEUES, &some, &map), -EPROTO);
        CHECK_INT(region_kept_format(next, &key, &some, fd), 0);
        CHECK(region_kept_fits(next, &key, &some));
        CHECK(is_zeroed(next));
        CHECK_INT(device_region_get_history(next, &history), 0);
        CHECK_INT(history.restarts, 6);
        close(next);
        close(fd);
}

/* Of the supervisor and the worker, one does not know of kept memory. */
static void test_the_ticket(void)
{
        int fd = new_region(&some);

        CHECK_INT(region_kept_take(fd), -EPROTO); /* the supervisor gives none */
        for (unsigned i = 0; i < 3; i++) {
                CHECK_INT(region_kept_give(fd), 0);
                CHECK_INT(region_kept_is_taken(fd), 0); /* the worker takes none */
                CHECK_INT(region_kept_give(fd), 0);     /* for the next worker: that one has died */
                CHECK_INT(region_kept_is_taken(fd), 0);
                CHECK_INT(region_kept_take(fd), 0);
                CHECK_INT(region_kept_is_taken(fd), 1);
                CHECK_INT(region_kept_take(fd),
                        -EPROTO); /* a worker that a supervisor without tickets starts */
                CHECK(region_kept_fits(fd, &key, &some));
        }
        close(fd);
}

static void test_the_region_of_an_older_program(void)
{
        struct old_header header = old_layout();
        int before = new_file(), fd = new_file();
        struct region_history history = {};
        struct region_kept_map map;
        uint64_t bytes = 1;

        header.history.restarts = 5;
        CHECK_INT(posix_fallocate(before, 0, (off_t)header.size), 0);
        CHECK_INT(pwrite(before, &header, sizeof(header), 0), sizeof(header));
        set_rounds(before, 4711);
        CHECK(region_kept_fits(before, &key, &none));
        CHECK(!region_kept_fits(before, &key, &some));
        CHECK_INT(region_kept_map(before, QUEUES, &some, &map), -EPROTO);
        CHECK_INT(region_kept_read_bytes(before, &bytes), 0);
        CHECK_INT(bytes, 0);
        CHECK_INT(region_kept_format(fd, &key, &some, before), 0);
        CHECK(region_kept_fits(fd, &key, &some));
        CHECK_INT(rounds_of(fd), 4711);
        CHECK_INT(device_region_get_history(fd, &history), 0);
        CHECK_INT(history.restarts, 5);
        CHECK(is_zeroed(fd));
        close(before);
        close(fd);
}

/* ---- a worker that goes mad ---- */

/* Whatever the file says, the next region is as large as the supervisor wants it. */
static void check_bounded(int fd)
{
        int next = new_file();
        uint64_t bytes = 0;
        struct stat st;

        if (region_kept_read_bytes(fd, &bytes) >= 0)
                CHECK(bytes <= (uint64_t)REGION_KEPT_DISK_MAX
                                       + (uint64_t)DEVICE_REGION_QUEUES_MAX * REGION_KEPT_QUEUE_MAX);
        CHECK_INT(region_kept_format(next, &key, &some, fd), 0);
        CHECK(region_kept_fits(next, &key, &some));
        CHECK(is_zeroed(next));
        CHECK_INT(fstat(next, &st), 0);
        CHECK_INT(st.st_size, old_layout().size + region_kept_size(&some, QUEUES));
        close(next);
}

static void test_each_word_of_the_header(void)
{
        static const uint64_t rubbish[] = {
                0, 1, UINT64_C(1) << 32, UINT64_MAX, INT64_MAX, 0x4141414141414141};
        size_t from = offsetof(struct device_region_header, kept), end = from + sizeof(struct region_kept);

        for (size_t at = from; at < end; at += sizeof(uint64_t))
                for (size_t i = 0; i < ARRAY_SIZE(rubbish); i++) {
                        struct region_kept_map map;
                        int fd = new_region(&some);
                        uint64_t was;
                        /* Those decide nothing of the layout, nor does the half of a word behind the version. */
                        bool same,
                                any = at == from + offsetof(struct region_kept, seed)
                                      || at == from + offsetof(struct region_kept, given),
                                lost = at == from + offsetof(struct region_kept, version);

                        fill(fd);
                        CHECK_INT(pread(fd, &was, sizeof(was), (off_t)at), sizeof(was));
                        CHECK_INT(pwrite(fd, &rubbish[i], sizeof(was), (off_t)at), sizeof(was));
                        same = was == rubbish[i] || any
                               || (lost && memcmp(&was, &rubbish[i], sizeof(uint32_t)) == 0);
                        CHECK_INT(region_kept_fits(fd, &key, &some), same);
                        CHECK_INT(region_kept_map(fd, QUEUES, &some, &map), same ? 0 : -EPROTO);
                        check_bounded(fd);
                        close(fd);
                }
}

static void test_rubbish_all_over_the_header(void)
{
        for (unsigned seed = 1; seed <= 300; seed++) {
                int fd = new_region(&some);
                unsigned char page[DEVICE_REGION_ALIGNMENT];
                size_t from, size;

                srand(seed);
                for (size_t i = 0; i < sizeof(page); i++)
                        page[i] = (unsigned char)rand();
                /* With the beginning left as it is, more of the rest is looked at. */
                from = seed % 2 ? 0 : (size_t)rand() % sizeof(struct device_region_header);
                size = sizeof(page) - from;
                CHECK_INT(pwrite(fd, page, size, (off_t)from), size);
                check_bounded(fd);
                close(fd);
        }
}

static void test_cut_off(void)
{
        struct stat st;
        int fd = new_region(&some);
        struct region_kept_map map;

        fill(fd);
        CHECK_INT(fstat(fd, &st), 0);
        CHECK_INT(ftruncate(fd, st.st_size - 1), 0);
        CHECK(!region_kept_fits(fd, &key, &some));
        CHECK_INT(region_kept_map(fd, QUEUES, &some, &map), -EPROTO);
        check_bounded(fd);
        for (off_t size = st.st_size; size >= 0; size -= 2048) {
                CHECK_INT(ftruncate(fd, size), 0);
                check_bounded(fd);
        }
        close(fd);
}

static void test_too_much(void)
{
        static const struct region_kept_wish bad[] = {
                {.target = "t", .disk_bytes = REGION_KEPT_DISK_MAX + 1},
                {.target = "t", .queue_bytes = REGION_KEPT_QUEUE_MAX + 1},
                {.target = "t", .disk_bytes = UINT64_MAX, .queue_bytes = UINT64_MAX},
                {.target = "a name that is longer than 31 bytes", .disk_bytes = 1},
        };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                int fd = new_file(), good = new_region(&some);
                struct region_kept_map map;
                struct stat st;

                CHECK(!region_kept_is_allowed(&bad[i]));
                CHECK_INT(region_kept_format(fd, &key, &bad[i], -1), -E2BIG);
                CHECK_INT(fstat(fd, &st), 0);
                CHECK_INT(st.st_size, 0);
                CHECK_INT(region_kept_map(good, QUEUES, &bad[i], &map), -E2BIG);
                CHECK(!region_kept_fits(good, &key, &bad[i]));
                close(good);
                close(fd);
        }
}

int main(void)
{
        test_the_next_worker_finds_it();
        test_areas_are_apart();
        test_one_kind();
        test_none();
        test_another_layout_begins_with_zeroes();
        test_another_region_begins_with_zeroes();
        test_an_older_program_adopts_it();
        test_a_worker_of_an_older_program_has_served();
        test_the_ticket();
        test_the_region_of_an_older_program();
        test_each_word_of_the_header();
        test_rubbish_all_over_the_header();
        test_cut_off();
        test_too_much();
        return check_report();
}
