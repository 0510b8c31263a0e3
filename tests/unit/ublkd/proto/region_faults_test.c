/* SPDX-License-Identifier: MIT */
/* Faults in a region: latched once, read by the supervisor, cleared with their number. */
#include "ublkd/base/cleanup.h"
#include "ublkd/proto/region_faults.h"
#include "tests/unit/ublkd/proto/new_region.h"

#include <errno.h>
#include <unistd.h>

static struct fault_report report_of(int fd, enum region_fault fault)
{
        struct fault_report reports[_REGION_FAULT_MAX];

        CHECK_INT(region_faults_read(fd, reports), 0);
        return reports[fault];
}

static void test_none_in_a_new_region(void)
{
        struct region_control *control;
        int fd = new_region(&control);

        for (unsigned i = 0; i < _REGION_FAULT_MAX; i++) {
                CHECK(!region_fault_is_latched(control, (enum region_fault)i));
                CHECK_INT(report_of(fd, (enum region_fault)i).number, 0);
        }
        close(fd);
}

static void test_the_first_stays(void)
{
        struct region_control *control;
        int fd = new_region(&control);
        struct fault_report report;

        CHECK(region_fault_latch(control, REGION_FAULT_FLUSH, STATS_FLUSH, EIO, 0));
        CHECK(!region_fault_latch(control, REGION_FAULT_FLUSH, STATS_WRITE, ENOSPC, 0));
        CHECK(region_fault_is_latched(control, REGION_FAULT_FLUSH));
        CHECK(!region_fault_is_latched(control, REGION_FAULT_CUT));
        report = report_of(fd, REGION_FAULT_FLUSH);
        CHECK_INT(report.number, 1);
        CHECK_INT(report.op, STATS_FLUSH);
        CHECK_INT(report.error, EIO);
        CHECK(report.at > 0);
        close(fd);
}

static void test_detail(void)
{
        struct region_control *control;
        int fd = new_region(&control);

        CHECK(region_fault_latch(control, REGION_FAULT_CUT, STATS_OTHER, EIO, UINT64_C(5) << 40));
        CHECK_INT(report_of(fd, REGION_FAULT_CUT).detail, UINT64_C(5) << 40);
        close(fd);
}

static void test_the_next_has_another_number(void)
{
        struct region_control *control;
        int fd = new_region(&control);

        (void)region_fault_latch(control, REGION_FAULT_FLUSH, STATS_FLUSH, EIO, 0);
        CHECK_INT(region_fault_accept(fd, REGION_FAULT_FLUSH, 1), 0);
        CHECK_INT(report_of(fd, REGION_FAULT_FLUSH).accepted, 1);
        CHECK(region_fault_is_latched(control, REGION_FAULT_FLUSH));
        CHECK_INT(region_fault_clear(fd, REGION_FAULT_FLUSH), 0);
        CHECK(!region_fault_is_latched(control, REGION_FAULT_FLUSH));
        CHECK_INT(report_of(fd, REGION_FAULT_FLUSH).accepted, 0);
        CHECK(region_fault_latch(control, REGION_FAULT_FLUSH, STATS_WRITE, ENOSPC, 0));
        CHECK_INT(report_of(fd, REGION_FAULT_FLUSH).number, 2);
        CHECK_INT(report_of(fd, REGION_FAULT_FLUSH).error, ENOSPC);
        close(fd);
}

/* A worker died between the word and the rest of it. */
static void test_without_its_time(void)
{
        struct region_control *control;
        int fd = new_region(&control);

        (void)region_fault_latch(control, REGION_FAULT_FLUSH, STATS_FLUSH, EIO, 0);
        control->faults[REGION_FAULT_FLUSH].at = 0;
        CHECK_INT(report_of(fd, REGION_FAULT_FLUSH).number, 1);
        CHECK_INT(report_of(fd, REGION_FAULT_FLUSH).at, 0);
        close(fd);
}

/* What a worker that went mad has written leads nowhere. */
static void test_nonsense(void)
{
        struct region_control *control;
        int fd = new_region(&control);

        control->faults[REGION_FAULT_FLUSH].word = UINT64_MAX;
        CHECK_INT(report_of(fd, REGION_FAULT_FLUSH).op, STATS_OTHER);
        CHECK_INT(ftruncate(fd, 100), 0);
        CHECK_INT(region_faults_read(fd, (struct fault_report[_REGION_FAULT_MAX]){}), -ENODATA);
        CHECK_INT(region_fault_clear(fd, REGION_FAULT_FLUSH), -ENODATA);
        close(fd);
}

/* A worker latches it meanwhile, or the supervisor has latched it before: both mean one fault. */
static void test_a_copy(void)
{
        struct region_control *one, *other;
        int from = new_region(&one), to = new_region(&other);
        struct fault_report found, report;

        CHECK(region_fault_latch(one, REGION_FAULT_CUT, STATS_OTHER, EIO, 4096));
        found = report_of(from, REGION_FAULT_CUT);
        CHECK_INT(region_fault_copy(to, REGION_FAULT_CUT, &found), 0);
        CHECK(region_fault_is_latched(other, REGION_FAULT_CUT));
        CHECK(!region_fault_is_latched(other, REGION_FAULT_FLUSH));
        report = report_of(to, REGION_FAULT_CUT);
        CHECK_INT(report.number, 1);
        CHECK_INT(report.op, STATS_OTHER);
        CHECK_INT(report.error, EIO);
        CHECK_INT(report.detail, 4096);
        CHECK_INT(report.at, found.at);
        found.detail = 0;
        CHECK_INT(region_fault_copy(to, REGION_FAULT_CUT, &found), 0);
        CHECK(!region_fault_latch(other, REGION_FAULT_CUT, STATS_OTHER, EIO, 0));
        CHECK_INT(report_of(to, REGION_FAULT_CUT).number, 1);
        CHECK_INT(report_of(to, REGION_FAULT_CUT).detail, 4096);
        CHECK_INT(region_fault_clear(to, REGION_FAULT_CUT), 0);
        CHECK_INT(region_fault_copy(to, REGION_FAULT_CUT, &found), 0);
        CHECK_INT(report_of(to, REGION_FAULT_CUT).number, 2); /* the administrator has not seen this one */
        close(from);
        close(to);
}

int main(void)
{
        test_none_in_a_new_region();
        test_the_first_stays();
        test_detail();
        test_the_next_has_another_number();
        test_without_its_time();
        test_nonsense();
        test_a_copy();
        return check_report();
}
