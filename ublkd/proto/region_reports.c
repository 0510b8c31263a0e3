/* SPDX-License-Identifier: MIT */
/* The events of the supervisor about a region that the database may not have yet. */
#include "ublkd/proto/region_reports.h"

#include <assert.h>

int region_reports_read(int fd, struct region_report ret[_REGION_REPORT_MAX])
{
        struct region_report reports[_REGION_REPORT_MAX];
        int r = device_region_read_control(
                fd, offsetof(struct region_control, reports), reports, sizeof(reports));

        for (unsigned i = 0; r >= 0 && i < _REGION_REPORT_MAX; i++)
                ret[i] = reports[i];
        return r;
}

static size_t place_of(unsigned what)
{
        assert(what <= REGION_REPORT_KEPT);
        return what == REGION_REPORT_KEPT
                       ? offsetof(struct region_control, kept_report)
                       : offsetof(struct region_control, reports) + what * sizeof(struct region_report);
}

int region_report_read(int fd, unsigned what, struct region_report *ret)
{
        struct region_report report;
        int r = device_region_read_control(fd, place_of(what), &report, sizeof(report));

        if (r >= 0)
                *ret = report;
        return r;
}

/* In one system call: revision and value never differ in age. */
int region_report_write(int fd, unsigned what, const struct region_report *report)
{
        return device_region_write_control(fd, place_of(what), report, sizeof(*report));
}

int region_report_clear(int fd, unsigned what)
{
        return region_report_write(fd, what, &(const struct region_report){});
}
