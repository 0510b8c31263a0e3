/* SPDX-License-Identifier: MIT */
/* What was reported by an event, and whether the database has that event. */
#include "ublkd/reconcile/parts/device_reports.h"
#include "ublkd/reconcile/parts/managed_device.h"

struct region_report device_report_note(
        const struct managed_device *device, int fd, unsigned what, uint64_t value)
{
        const struct region_report report = {
                .revision = device_store_revision(device->env->config.store), .value = value};

        (void)region_report_write(fd, what, &report);
        return report;
}

static enum event_fate fate_of(const struct managed_device *device, const struct region_report *report,
        enum event_type type, enum condition_reason reason)
{
        const struct device_event kind = {
                .device = (char *)device->id.name, /* not changed */
                .uid = (char *)device->id.uid,
                .type = type,
                .reason = reason,
        };

        return event_log_fate(device_store_events(device->env->config.store), &kind, report->revision);
}

/* One that is lost is taken out at once: a later event of its kind may continue an earlier one, and would pass for it. */
enum event_fate device_report_fate(const struct managed_device *device, int fd, unsigned what,
        const struct region_report *report, enum event_type type, enum condition_reason reason)
{
        enum event_fate fate;

        if (report->revision == 0)
                return EVENT_LOST;
        fate = fate_of(device, report, type, reason);
        if (fate == EVENT_LOST)
                (void)region_report_clear(fd, what);
        return fate;
}

bool device_report_waits(const struct managed_device *device, const struct region_report *report,
        enum event_type type, enum condition_reason reason)
{
        return report->revision > 0 && fate_of(device, report, type, reason) == EVENT_WAITS;
}
