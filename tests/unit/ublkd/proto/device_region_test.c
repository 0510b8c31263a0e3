/* SPDX-License-Identifier: MIT */
/* The memory that workers share: made, found again, and never misread. */
#include "ublkd/base/cleanup.h"
#include "ublkd/proto/device_region.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct device_region_key key = {.queues = 3, .epoch = 7};

static int new_region(void)
{
        int fd = memfd_create("region", MFD_CLOEXEC);

        CHECK_INT(device_region_format(fd, &key), 0);
        return fd;
}

static void test_made_whole(void)
{
        struct device_region_header header;
        int fd = new_region();
        struct stat st;

        CHECK_INT(device_region_read_header(fd, &header), 0);
        CHECK_INT(header.queues, 3);
        CHECK_INT(header.epoch, 7);
        CHECK_INT(fstat(fd, &st), 0);
        CHECK_INT(st.st_size, header.size);
        CHECK((uint64_t)st.st_blocks * 512
                >= header.size); /* all of it allocated: a store cannot raise SIGBUS */
        close(fd);
}

static void test_queues_do_not_share_lines(void)
{
        int fd = new_region();
        char *base = NULL;

        CHECK_INT(device_region_map(fd, 3, (void **)&base), 0);
        for (unsigned i = 0; i < 3; i++) {
                char *stats = (char *)device_region_queue_stats(base, i);

                CHECK_INT((stats - base) % DEVICE_REGION_ALIGNMENT, 0);
                CHECK(stats > base);
                if (i > 0)
                        CHECK(stats - (char *)device_region_queue_stats(base, i - 1)
                                >= (ptrdiff_t)sizeof(struct queue_stats));
        }
        close(fd);
}

static void test_kept_by_the_next(void)
{
        int fd = new_region();
        void *one = NULL, *two = NULL;

        CHECK_INT(device_region_map(fd, 3, &one), 0);
        device_region_queue_stats(one, 2)->rounds = 4711;
        CHECK_INT(device_region_map(fd, 3, &two), 0);
        CHECK_INT(device_region_queue_stats(two, 2)->rounds, 4711);
        close(fd);
}

/* Overwrites a part of the header, and reads it. */
static int after_damage(size_t offset, uint32_t value)
{
        struct device_region_header header;
        int fd = new_region(), r;

        CHECK_INT(pwrite(fd, &value, sizeof(value), (off_t)offset), sizeof(value));
        r = device_region_read_header(fd, &header);
        close(fd);
        return r;
}

static void test_never_misread(void)
{
        CHECK_INT(after_damage(offsetof(struct device_region_header, magic), 1), -ENODATA);
        CHECK_INT(after_damage(offsetof(struct device_region_header, version), DEVICE_REGION_VERSION + 1),
                -EPROTO);
        CHECK_INT(after_damage(offsetof(struct device_region_header, version), DEVICE_REGION_VERSION - 1),
                -EPROTO);
        CHECK_INT(after_damage(offsetof(struct device_region_header, queues), 0), -ENODATA);
        CHECK_INT(after_damage(offsetof(struct device_region_header, queues), 4), -ENODATA);
        CHECK_INT(after_damage(offsetof(struct device_region_header, queues), UINT32_MAX), -ENODATA);
        CHECK_INT(after_damage(offsetof(struct device_region_header, epoch), UINT32_MAX), -ENODATA);
        CHECK_INT(after_damage(offsetof(struct device_region_header, size), 1), -ENODATA);
        CHECK_INT(after_damage(offsetof(struct device_region_header, section[0].offset), 1), -ENODATA);
        CHECK_INT(after_damage(offsetof(struct device_region_header, section[0].size), UINT32_MAX), -ENODATA);
        CHECK_INT(after_damage(offsetof(struct device_region_header, epoch), 8), 0);
}

static void test_cut_off(void)
{
        struct device_region_header header;
        int fd = new_region();
        void *base;

        CHECK_INT(ftruncate(fd, DEVICE_REGION_ALIGNMENT), 0);
        CHECK_INT(device_region_read_header(fd, &header), -ENODATA);
        CHECK_INT(device_region_map(fd, 3, &base), -ENODATA);
        CHECK_INT(ftruncate(fd, 0), 0);
        CHECK_INT(device_region_read_header(fd, &header), -ENODATA);
        close(fd);
}

/* The supervisor's values arrive whole, and only when there is something new. */
static void test_values(void)
{
        const struct region_values set = {
                .busy_poll_us = 50, .limits[REGION_WRITE] = {.per_second = {[REGION_BUCKET_BYTES] = 4711}}};
        struct region_values got = {};
        uint32_t sequence = 0, half = 5;
        int fd = new_region();
        void *base;

        CHECK_INT(device_region_map(fd, 3, &base), 0);
        CHECK_INT(device_region_sequence(base), 0);
        CHECK_INT(device_region_set_values(fd, &set), 1);
        CHECK_INT(device_region_set_values(fd, &set), 0);
        CHECK_INT(device_region_sequence(base), 2);
        CHECK(device_region_get_values(base, &sequence, &got));
        CHECK_INT(sequence, 2);
        CHECK_INT(memcmp(&got, &set, sizeof(set)), 0);
        /* A supervisor died while it wrote: the worker waits for the next one. */
        CHECK_INT(pwrite(fd, &half, sizeof(half), DEVICE_REGION_ALIGNMENT), sizeof(half));
        CHECK(!device_region_get_values(base, &sequence, &got));
        CHECK_INT(device_region_set_values(fd, &set), 1);
        CHECK(device_region_get_values(base, &sequence, &got));
        CHECK_INT(sequence, 6);
        CHECK_INT(ftruncate(fd, 0), 0);
        CHECK_INT(device_region_set_values(fd, &set), -ENODATA);
        close(fd);
}

static void test_history(void)
{
        static const struct region_history bad[] = {
                {.last_recovery_ms = NAN},
                {.last_recovery_ms = -1},
                {.restarts = UINT64_MAX},
                {.recoveries = UINT64_MAX},
        };
        struct region_history history = {.restarts = 3, .recoveries = 2, .last_recovery_ms = 14.25}, got = {};
        struct device_region_header header;
        int fd = new_region();

        CHECK_INT(device_region_get_history(fd, &got), 0);
        CHECK(got.restarts == 0 && got.recoveries == 0 && got.last_recovery_ms == 0);
        CHECK_INT(device_region_set_history(fd, &history), 0);
        CHECK_INT(device_region_get_history(fd, &got), 0);
        CHECK(got.restarts == 3 && got.recoveries == 2 && got.last_recovery_ms == 14.25);
        CHECK_INT(device_region_read_header(fd, &header), 0);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) { /* as a worker that goes mad could leave it */
                CHECK_INT(device_region_set_history(fd, &bad[i]), 0);
                CHECK_INT(device_region_get_history(fd, &got), -ENODATA);
        }
        CHECK_INT(got.restarts, 3);
        CHECK_INT(ftruncate(fd, 0), 0);
        CHECK_INT(device_region_set_history(fd, &history), -ENODATA);
        CHECK_INT(device_region_get_history(fd, &got), -ENODATA);
        close(fd);
}

static void test_bad_keys(void)
{
        int fd = memfd_create("region", MFD_CLOEXEC);
        void *base;

        CHECK_INT(device_region_format(fd, &(struct device_region_key){.queues = 0}), -EINVAL);
        CHECK_INT(
                device_region_format(fd, &(struct device_region_key){.queues = DEVICE_REGION_QUEUES_MAX + 1}),
                -EINVAL);
        CHECK_INT(device_region_map(fd, 3, &base), -ENODATA);
        close(fd);
        fd = new_region();
        CHECK_INT(device_region_map(fd, 2, &base), -EINVAL);
        close(fd);
}

int main(void)
{
        test_made_whole();
        test_queues_do_not_share_lines();
        test_kept_by_the_next();
        test_never_misread();
        test_cut_off();
        test_values();
        test_history();
        test_bad_keys();
        return check_report();
}
