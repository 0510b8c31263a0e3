/* SPDX-License-Identifier: MIT */
/* An action in a region: as the worker writes it, and as the supervisor reads it, whatever is there. */
#include "tests/unit/ublkd/proto/new_region.h"
#include "ublkd/proto/region_action.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static struct action_report report_of(int fd)
{
        struct action_report report = {};

        CHECK_INT(region_action_read(fd, &report), 0);
        return report;
}

static void test_one_after_another(void)
{
        struct region_control *control;
        int fd = new_region(&control);
        struct action_report report = report_of(fd);

        CHECK(report.id == 0 && report.state == REGION_ACTION_NONE);
        region_action_begin(control, 7, 70);
        region_action_progress(control, 10, 100);
        region_action_found(control, 4096, 4096);
        region_action_found(control, 8192, 4096);  /* continues it */
        region_action_found(control, 65536, 4096); /* does not */
        report = report_of(fd);
        CHECK(report.id == 7 && report.worker == 70 && report.state == REGION_ACTION_RUNNING);
        CHECK(report.done == 10 && report.total == 100);
        CHECK(report.found == 2 && report.found_bytes == 3 * 4096 && report.range_count == 2);
        CHECK(report.ranges[0].offset == 4096 && report.ranges[0].length == 8192);
        CHECK(report.ranges[1].offset == 65536 && report.ranges[1].length == 4096);
        region_action_end(control, REGION_ACTION_FAILED, EIO);
        report = report_of(fd);
        CHECK(report.state == REGION_ACTION_FAILED && report.error == EIO && report.found == 2);
        region_action_begin(control, 8, 71);
        report = report_of(fd);
        CHECK(report.id == 8 && report.state == REGION_ACTION_RUNNING && report.error == 0);
        CHECK(report.done == 0 && report.found == 0 && report.range_count == 0);
        CHECK_INT(control->action.ends, 1);
        close(fd);
}

/* The request to end one action does not end another, and outlives the beginning of the action. */
static void test_cancel(void)
{
        struct region_control *control;
        int fd = new_region(&control);

        CHECK_INT(region_action_cancel(fd, 7), 0);
        region_action_begin(control, 7, 1);
        CHECK(region_action_is_cancelled(control, 7));
        region_action_begin(control, 8, 1);
        CHECK(!region_action_is_cancelled(control, 8));
        CHECK_INT(region_action_cancel(fd, 8), 0);
        CHECK(region_action_is_cancelled(control, 8));
        close(fd);
}

static void test_more_ranges_than_there_is_room_for(void)
{
        struct region_control *control;
        int fd = new_region(&control);
        struct action_report report;

        region_action_begin(control, 1, 1);
        for (uint64_t i = 0; i < 2 * REGION_ACTION_RANGES; i++)
                region_action_found(control, i * 8192, 4096);
        region_action_found(control, (uint64_t)(REGION_ACTION_RANGES - 1) * 8192 + 4096, 4096);
        report = report_of(fd);
        CHECK_INT(report.found, 2 * REGION_ACTION_RANGES + 1);
        CHECK_INT(report.range_count, REGION_ACTION_RANGES);
        CHECK_INT(report.ranges[REGION_ACTION_RANGES - 1].length, 4096);
        close(fd);
}

/* A worker died while it wrote: what is there is not an end. The next one goes on from there. */
static void test_half_written(void)
{
        struct region_control *control;
        int fd = new_region(&control);

        region_action_begin(control, 3, 1);
        region_action_end(control, REGION_ACTION_DONE, 0);
        control->action.sequence |= 1;
        CHECK_INT(report_of(fd).state, REGION_ACTION_RUNNING);
        region_action_begin(control, 4, 2);
        region_action_end(control, REGION_ACTION_DONE, 0);
        CHECK_INT(report_of(fd).state, REGION_ACTION_DONE);
        close(fd);
}

static void test_rubbish_is_bounded(void)
{
        const uint64_t most = UINT64_C(1) << 53;
        struct region_control *control;
        int fd = new_region(&control);
        struct action_report report;

        memset(&control->action, 0xff, sizeof(control->action));
        control->action.sequence = 0;
        report = report_of(fd);
        CHECK_INT(report.state, REGION_ACTION_RUNNING);
        CHECK(report.total == most && report.done == most && report.found == most);
        CHECK_INT(report.range_count, REGION_ACTION_RANGES);
        CHECK(report.ranges[0].offset == most && report.ranges[0].length == 0);
        control->action.state = REGION_ACTION_FAILED;
        report = report_of(fd);
        CHECK_INT(report.error, EIO);
        control->action.total = 5;
        CHECK_INT(report_of(fd).done, 5);
        for (unsigned found = 0; found < 3; found++) { /* never more ranges than the count says */
                control->action.found = found;
                CHECK_INT(report_of(fd).range_count, found);
        }
        close(fd);
}

int main(void)
{
        test_one_after_another();
        test_cancel();
        test_more_ranges_than_there_is_room_for();
        test_half_written();
        test_rubbish_is_bounded();
        return check_report();
}
