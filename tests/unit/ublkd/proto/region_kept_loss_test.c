/* SPDX-License-Identifier: MIT */
/* What was kept is lost under a disk that exists: the region that comes in its place says so, until that is reported. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/proto/kept_region.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/proto/region_faults.h"
#include "ublkd/proto/region_kept.h"

#include <unistd.h>

static int new_region(const struct region_kept_wish *wish)
{
        struct region_kept_wish first = *wish;
        int fd = new_file();

        first.new_disk = true;
        CHECK_INT(region_kept_format(fd, &key, &first, -1), 0);
        return fd;
}

/* Return its number; 0: there is none. */
static uint64_t new_loss(int fd)
{
        uint64_t loss = 0;
        int r = region_kept_has_new_loss(fd, &loss);

        CHECK(r >= 0);
        return r > 0 ? loss : 0;
}

static uint32_t faults_of(int fd)
{
        struct fault_report reports[_REGION_FAULT_MAX];

        CHECK_INT(region_faults_read(fd, reports), 0);
        CHECK_INT(reports[REGION_FAULT_CUT].number, 0);
        return reports[REGION_FAULT_FLUSH].number;
}

/* The target of each worker learns of it, and one event reports it. */
static void check_loss(int fd, const struct region_kept_wish *wish, bool lost)
{
        struct region_kept_map map;
        uint64_t loss;

        CHECK_INT(region_kept_has_new_loss(fd, &loss), lost);
        for (unsigned i = 0; i < 2; i++) {
                CHECK(wish->new_disk || region_kept_fits(fd, &key, wish));
                CHECK_INT(region_kept_map(fd, QUEUES, wish, &map), 0);
                CHECK_INT(map.lost, lost && wish->disk_bytes > 0);
                if (lost)
                        CHECK_INT(region_kept_note_reported(fd), 0);
                CHECK_INT(region_kept_has_new_loss(fd, &loss), 0);
        }
}

/* The next flush of a disk that exists fails, until the administrator accepts the loss. */
static void test_a_loss_is_latched(void)
{
        static const struct region_kept_wish version2 = {
                .target = "keeping", .disk_bytes = DISK_BYTES, .queue_bytes = QUEUE_BYTES, .version = 2};
        static const struct region_kept_wish new_disk = {.target = "keeping",
                .disk_bytes = DISK_BYTES,
                .queue_bytes = QUEUE_BYTES,
                .version = 1,
                .new_disk = true};
        static const struct {
                const struct region_kept_wish *before, *wish; /* before NULL: no region */
                uint32_t faults;
        } cases[] = {
                {&some, &version2, 1},
                {&some, &none,     1},
                {&some, &new_disk, 0},
                {&none, &some,     0},
                {&none, &none,     0},
                {NULL,  &some,     1},
                {NULL,  &new_disk, 0},
                {NULL,  &none,     0},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int before = cases[i].before ? new_region(cases[i].before) : -1, fd = new_file();

                if (before >= 0)
                        CHECK_INT(faults_of(before), 0);
                CHECK_INT(region_kept_format(fd, &key, cases[i].wish, before), 0);
                CHECK_INT(faults_of(fd), cases[i].faults);
                check_loss(fd, cases[i].wish, cases[i].faults > 0);
                close_fd(before);
                close(fd);
        }
}

/* A target that keeps something for the first time has lost nothing with that before it: the loss was that of an earlier one. */
static void test_an_earlier_loss_does_not_count(void)
{
        int first = new_region(&some), second = new_file(), third = new_file();
        uint64_t loss;

        CHECK_INT(region_kept_format(second, &key, &none, first), 0);
        CHECK_INT(region_kept_has_new_loss(second, &loss), 1);
        CHECK_INT(region_kept_format(third, &key, &some, second), 0);
        CHECK_INT(region_kept_has_new_loss(third, &loss), 0);
        close(third);
        close(second);
        close(first);
}

/* A worker has written to it; it is not that of a region from before kept memory. */
static void test_a_header_that_was_zeroed(void)
{
        static const struct region_kept zeroes;
        int before = new_region(&some), fd = new_file();
        uint64_t loss;

        CHECK_INT(device_region_write(
                          before, offsetof(struct device_region_header, kept), &zeroes, sizeof(zeroes)),
                0);
        CHECK_INT(region_kept_format(fd, &key, &some, before), 0);
        CHECK_INT(region_kept_has_new_loss(fd, &loss), 1);
        CHECK_INT(faults_of(fd), 1);
        close(fd);
        close(before);
}

/* An event of the first loss is none of the second. */
static void test_each_loss_has_a_number(void)
{
        int first = new_region(&some), second = new_file(), third = new_file();
        struct region_kept_wish other = some;

        other.version = 2;
        CHECK_INT(region_kept_format(second, &key, &other, first), 0);
        CHECK_INT(region_kept_format(third, &key, &some, second), 0);
        CHECK(new_loss(second) != 0);
        CHECK(new_loss(third) != 0);
        CHECK(new_loss(second) != new_loss(third));
        close(third);
        close(second);
        close(first);
}

int main(void)
{
        test_a_loss_is_latched();
        test_an_earlier_loss_does_not_count();
        test_a_header_that_was_zeroed();
        test_each_loss_has_a_number();
        return check_report();
}
