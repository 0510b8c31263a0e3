/* SPDX-License-Identifier: MIT */
/* Failed requests in a region: counted, the newest kept, read within bounds. */
#include "ublkd/base/clock.h"
#include "ublkd/proto/region_errors.h"
#include "tests/unit/ublkd/proto/new_region.h"

#include <errno.h>
#include <unistd.h>

static struct error_report report_of(int fd, enum stats_op op)
{
        struct error_report reports[_STATS_OP_MAX];

        CHECK_INT(region_errors_read(fd, reports), 0);
        return reports[op];
}

static uint64_t count_of(int fd, enum stats_op op, enum region_errno error)
{
        uint64_t counts[_STATS_OP_MAX][_REGION_ERRNO_MAX];

        CHECK_INT(region_errors_read_counts(fd, counts), 0);
        return counts[op][error];
}

static void test_none_in_a_new_region(void)
{
        struct region_control *control;
        int fd = new_region(&control);

        for (unsigned i = 0; i < _STATS_OP_MAX; i++)
                CHECK_INT(report_of(fd, (enum stats_op)i).count, 0);
        close(fd);
}

static void test_the_newest_is_kept_and_all_are_counted(void)
{
        uint64_t before = clock_usec(CLOCK_REALTIME);
        struct region_control *control;
        int fd = new_region(&control);
        struct error_report report;

        (void)region_error_note(control, STATS_WRITE, ENOSPC, 4096, 8192);
        (void)region_error_note(control, STATS_WRITE, EIO, UINT64_C(1) << 40, 512);
        (void)region_error_note(control, STATS_READ, ENXIO, 0, 4096);
        report = report_of(fd, STATS_WRITE);
        CHECK_INT(report.count, 2);
        CHECK_INT(report.error, EIO);
        CHECK_INT(report.offset, UINT64_C(1) << 40);
        CHECK_INT(report.length, 512);
        CHECK(report.at >= before && report.at <= clock_usec(CLOCK_REALTIME));
        CHECK_INT(report_of(fd, STATS_READ).count, 1);
        CHECK_INT(report_of(fd, STATS_READ).error, ENXIO);
        CHECK_INT(count_of(fd, STATS_WRITE, REGION_ERRNO_ENOSPC), 1);
        CHECK_INT(count_of(fd, STATS_WRITE, REGION_ERRNO_EIO), 1);
        CHECK_INT(count_of(fd, STATS_READ, REGION_ERRNO_OTHER), 1);
        close(fd);
}

static void test_an_answer_is_not_a_failure_of_the_store(void)
{
        struct region_control *control;
        int fd = new_region(&control);

        CHECK(!region_error_note(control, STATS_DISCARD, EOPNOTSUPP, 0, 4096));
        CHECK_INT(report_of(fd, STATS_DISCARD).count, 0);
        CHECK_INT(count_of(fd, STATS_DISCARD, REGION_ERRNO_EOPNOTSUPP), 1);
        close(fd);
}

/* The first error at once, then one in a second. */
static void test_a_flood_is_news_once_in_a_second(void)
{
        struct region_control *control;
        int fd = new_region(&control);
        unsigned news = 0;

        CHECK(region_error_note(control, STATS_WRITE, EIO, 0, 512));
        control->errors.announced_at = clock_usec(CLOCK_MONOTONIC);
        for (unsigned i = 0; i < 1000; i++)
                news += region_error_note(control, STATS_WRITE, EIO, 0, 512);
        CHECK(news <= 1); /* a second may have passed */
        CHECK_INT(control->errors.changes, 1 + news);
        CHECK_INT(report_of(fd, STATS_WRITE).count, 1001);
        control->errors.announced_at -= 2 * USEC_PER_SEC;
        CHECK(region_error_note(control, STATS_READ, EIO, 0, 512));
        close(fd);
}

/* It died with the sequence odd: without the next worker's begin no details would be written any more. */
static void test_after_a_worker_that_died_while_it_wrote(void)
{
        struct region_control *control;
        int fd = new_region(&control);

        control->errors.newest[STATS_WRITE].sequence = 5;
        (void)region_error_note(control, STATS_WRITE, EIO, 4096, 512);
        CHECK_INT(report_of(fd, STATS_WRITE).count, 1);
        CHECK_INT(report_of(fd, STATS_WRITE).length, 0);
        region_errors_begin(control);
        (void)region_error_note(control, STATS_WRITE, EIO, 4096, 512);
        CHECK_INT(report_of(fd, STATS_WRITE).length, 512);
        CHECK_INT(report_of(fd, STATS_WRITE).count, 2);
        close(fd);
}

static void test_reported_is_kept_for_the_next_supervisor(void)
{
        struct region_control *control;
        int fd = new_region(&control);

        (void)region_error_note(control, STATS_READ, EIO, 0, 512);
        CHECK_INT(report_of(fd, STATS_READ).reported, 0);
        CHECK_INT(region_error_mark_reported(fd, STATS_READ, 1), 0);
        CHECK_INT(report_of(fd, STATS_READ).reported, 1);
        CHECK_INT(report_of(fd, STATS_WRITE).reported, 0);
        close(fd);
}

/* What a worker that was taken over writes is shown within bounds. */
static void test_nonsense_is_bounded(void)
{
        const uint64_t most = UINT64_C(1) << 53;
        struct region_control *control;
        int fd = new_region(&control);
        struct error_report report;

        memset(&control->errors, 0xff, sizeof(control->errors));
        report = report_of(fd, STATS_WRITE);
        CHECK_INT(report.count, most);
        CHECK_INT(report.offset, most);
        CHECK_INT(report.error, EIO);
        CHECK(report.at <= clock_usec(CLOCK_REALTIME));
        CHECK_INT(count_of(fd, STATS_OTHER, REGION_ERRNO_OTHER), most);
        control->errors.newest[STATS_READ].error = 0;
        CHECK_INT(report_of(fd, STATS_READ).error, EIO);
        CHECK_INT(ftruncate(fd, 100), 0);
        CHECK_INT(region_errors_read(fd, (struct error_report[_STATS_OP_MAX]){}), -ENODATA);
        CHECK_INT(region_error_mark_reported(fd, STATS_READ, 1), -ENODATA);
        close(fd);
}

int main(void)
{
        test_none_in_a_new_region();
        test_the_newest_is_kept_and_all_are_counted();
        test_an_answer_is_not_a_failure_of_the_store();
        test_a_flood_is_news_once_in_a_second();
        test_after_a_worker_that_died_while_it_wrote();
        test_reported_is_kept_for_the_next_supervisor();
        test_nonsense_is_bounded();
        return check_report();
}
