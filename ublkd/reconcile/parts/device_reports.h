/* SPDX-License-Identifier: MIT */
/* What was reported by an event, and whether the database has that event (proto/region_reports.h). */
#pragma once

#include "ublkd/proto/region_reports.h"
#include "ublkd/store/event_log.h"

struct managed_device;

/* Note in the region that is open as fd that the event of the last device_emit() reports `value`. Return the note. */
struct region_report device_report_note(
        const struct managed_device *device, int fd, unsigned what, uint64_t value);
/* Return the fate of the event of `report`, which was read from the region, perhaps of an earlier ublkd's. EVENT_LOST
 * also means that there was none; it is taken out of the region, and must be reported again. EVENT_SAVED: the caller
 * marks in the region what was reported, then takes it out. */
enum event_fate device_report_fate(const struct managed_device *device, int fd, unsigned what,
        const struct region_report *report, enum event_type type, enum condition_reason reason);
/* Return whether there is an event of `report` that the database does not have yet. Changes nothing. */
bool device_report_waits(const struct managed_device *device, const struct region_report *report,
        enum event_type type, enum condition_reason reason);
