/* SPDX-License-Identifier: MIT */
/* Reports the faults of a backing store that lose acknowledged data, and clears accepted ones. */
#include "ublkd/reconcile/backing/device_faults.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/device_reports.h"
#include "ublkd/reconcile/backing/device_space.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/view/fault_condition.h"

#include "ublkd/base/clock.h"

#include <stdio.h>
#include <string.h>

enum { QUIET_USEC = 60 * 1000 * 1000 };

static int open_region(const struct managed_device *device)
{
        return runtime_dir_open_region(device->env->config.runtime_dir, device->id.uid);
}

/* Make the event, then note it: if the supervisor dies in between, the next one reports it again. A worker can write to all
 * that is read here: it gets one event of each fault in QUIET_USEC, and the condition shows the last one. */
static void report_new(struct managed_device *device, int fd, enum region_fault fault)
{
        struct fault_report *report = &device->faults.reports[fault];
        uint64_t now = monotonic_now();
        _cleanup_free_ char *text = NULL;

        if (report->number == 0 || report->number == report->reported
                || now < device->faults.quiet_until[fault])
                return;
        (void)fault_explain(fault, report, &text);
        device_emit(device, EVENT_WARNING, fault_reason(fault), "%s",
                text ? text : "Acknowledged data may be lost.");
        device->faults.waiting[fault] =
                device_report_note(device, fd, REGION_REPORT_FAULTS + fault, report->number);
        report->reported = report->number;
        device->faults.quiet_until[fault] = now + QUIET_USEC;
}

/* Take account of events that the database may not have yet, and mark in the region what those report that it has: not
 * where the region has this fault as reported, by an older ublkd that knew of no such notes. */
static void find_reported(struct managed_device *device, int fd, struct fault_report found[_REGION_FAULT_MAX])
{
        struct region_report reports[_REGION_REPORT_MAX];

        if (region_reports_read(fd, reports) < 0)
                return;
        for (unsigned i = 0; i < _REGION_FAULT_MAX; i++) {
                const unsigned what = REGION_REPORT_FAULTS + i;
                const uint32_t number = (uint32_t)reports[what].value;
                enum event_fate fate = device_report_fate(
                        device, fd, what, &reports[what], EVENT_WARNING, fault_reason((enum region_fault)i));

                device->faults.waiting[i] = fate == EVENT_WAITS ? reports[what] : (struct region_report){};
                if (fate == EVENT_LOST)
                        continue;
                if (found[i].reported == found[i].number
                        || (fate == EVENT_SAVED
                                && region_fault_mark_reported(fd, (enum region_fault)i, number) >= 0))
                        (void)region_report_clear(fd, what);
                if (found[i].reported != found[i].number)
                        found[i].reported = number;
        }
}

/* Read all faults; `fd`: the region, or -errno. Return 0 or -errno. On failure the known faults stay: a process
 * has removed or damaged the file, and the worker still fails the I/O. */
static int read_region(struct managed_device *device, int fd)
{
        struct fault_report reports[_REGION_FAULT_MAX];
        uint32_t epoch;
        int r = fd < 0 ? fd : region_faults_read_of(fd, reports, &epoch);

        if (r < 0)
                return r;
        find_reported(device, fd, reports);
        memcpy(device->faults.reports, reports, sizeof(reports));
        device->faults.epoch = epoch;
        return 0;
}

void device_faults_read(struct managed_device *device)
{
        _cleanup_close_ int fd = open_region(device);
        const struct worker_proc *worker = device->process.worker;

        device->faults.read_since_death = false;
        if (read_region(device, fd) < 0)
                return;
        device->faults.read_since_death = !worker || worker_proc_death(worker);
        for (unsigned i = 0; i < _REGION_FAULT_MAX; i++)
                report_new(device, fd, (enum region_fault)i);
}

/* A process has removed or damaged the region: report the cut, and keep it for the region of the next worker. The
 * serving worker has mapped a region that ublkd cannot open. A growth to the current size changes nothing, but the
 * worker measures its store and latches the cut, if it is still cut off. */
static void keep_cut(
        struct managed_device *device, const struct device_record *record, const struct fault_report *found)
{
        struct fault_report *report = &device->faults.reports[REGION_FAULT_CUT];

        if (device->process.worker && device->view.geometry.error >= 0)
                (void)worker_proc_grow(device->process.worker, device->view.geometry.size);
        if (report->number > 0)
                return;
        *report = *found;
        report->number = record->accepted.cut + 1; /* the administrator has not seen this one */
        report->accepted = report->reported = 0;
        device->faults.epoch = record->epoch;
        report_new(device, -1, REGION_FAULT_CUT);
}

void device_faults_take_cut(
        struct managed_device *device, const struct device_record *record, const char *uid)
{
        _cleanup_close_ int from = runtime_dir_open_region(device->env->config.runtime_dir, uid);
        _cleanup_close_ int to = open_region(device);
        struct fault_report found[_REGION_FAULT_MAX];

        if (from < 0 || region_faults_read(from, found) < 0 || found[REGION_FAULT_CUT].number == 0)
                return;
        if (to >= 0 && region_fault_copy(to, REGION_FAULT_CUT, &found[REGION_FAULT_CUT]) >= 0)
                device_faults_read(device);
        else
                keep_cut(device, record, &found[REGION_FAULT_CUT]);
}

void device_faults_accept(struct managed_device *device, const struct device_record *record)
{
        const uint32_t accepted[] = {
                [REGION_FAULT_FLUSH] = record->accepted.flush, [REGION_FAULT_CUT] = record->accepted.cut};
        _cleanup_close_ int fd = -1;
        int r;

        if (record->accepted_with != record->restart || device->faults.accepted_with == record->restart
                || record->restart_refused == record->restart)
                return;
        for (unsigned i = 0; i < _REGION_FAULT_MAX; i++) /* also if a process has removed the region */
                device->faults.reports[i].accepted = accepted[i];
        fd = open_region(device);
        r = fd < 0 ? fd : 0;
        for (unsigned i = 0; r >= 0 && i < _REGION_FAULT_MAX; i++)
                r = region_fault_accept(fd, (enum region_fault)i, accepted[i]);
        if (r >= 0)
                device->faults.accepted_with = record->restart;
}

/* device_faults_accept() does nothing more for this restart, also if the refusal could not be stored. */
void device_faults_refuse(struct managed_device *device, const struct device_record *record)
{
        _cleanup_close_ int fd = open_region(device);

        device->faults.accepted_with = record->restart;
        for (unsigned i = 0; i < _REGION_FAULT_MAX; i++) {
                device->faults.reports[i].accepted = 0;
                if (fd >= 0)
                        (void)region_fault_accept(fd, (enum region_fault)i, 0);
        }
}

static bool is_accepted(const struct fault_report *report)
{
        return report->number > 0 && report->number <= report->accepted;
}

static bool has_fault(const struct managed_device *device, bool (*which)(const struct fault_report *report))
{
        for (unsigned i = 0; i < _REGION_FAULT_MAX; i++)
                if (which(&device->faults.reports[i]))
                        return true;
        return false;
}

static void clear(struct managed_device *device, bool (*which)(const struct fault_report *report))
{
        _cleanup_close_ int fd = open_region(device);
        bool is_there = read_region(device, fd) >= 0;

        for (unsigned i = 0; i < _REGION_FAULT_MAX; i++)
                if (which(&device->faults.reports[i])
                        && (!is_there || region_fault_clear(fd, (enum region_fault)i) >= 0)) {
                        device->faults.reports[i] = (struct fault_report){};
                        device->faults.quiet_until[i] = 0; /* the next one is another fault */
                }
}

void device_faults_begin(struct managed_device *device, const struct device_record *record)
{
        device_faults_accept(device, record); /* if that failed at the request */
        if (!device->faults.read_since_death || has_fault(device, is_accepted))
                clear(device, is_accepted);
        device->faults.read_since_death = false;
}

static bool is_latched(const struct fault_report *report)
{
        return report->number > 0;
}

/* The next ublkd learns of it what it would have learnt of the region that is gone. The note comes first: with a fault
 * that is not reported yet, and without the note, there would be a second event. */
static int restore(const struct managed_device *device, int fd, enum region_fault fault)
{
        const struct region_report *waiting = &device->faults.waiting[fault];
        struct fault_report report = device->faults.reports[fault];
        int r;

        if (waiting->revision == 0)
                return region_fault_restore(fd, fault, &report);
        report.reported = 0;
        r = region_report_write(fd, REGION_REPORT_FAULTS + fault, waiting);
        return r < 0 ? r : region_fault_restore(fd, fault, &report);
}

int device_faults_carry(struct managed_device *device, const struct device_region_key *key)
{
        struct fault_report found[_REGION_FAULT_MAX];
        _cleanup_close_ int fd = -1;
        int r;

        if (!has_fault(device, is_latched) || device->faults.epoch != key->epoch)
                return 0;
        fd = runtime_dir_ensure_region(device->env->config.runtime_dir, device->id.uid, key);
        r = fd < 0 ? fd : region_faults_read(fd, found);
        for (unsigned i = 0; r >= 0 && i < _REGION_FAULT_MAX; i++)
                if (is_latched(&device->faults.reports[i]) && !is_latched(&found[i]))
                        r = restore(device, fd, (enum region_fault)i);
        return r;
}

void device_faults_settle(struct managed_device *device, const struct device_record *record)
{
        bool disabled = record->spec && !device_record_enabled(record);

        if (device->view.facts.want == WANT_ABSENT && disabled)
                clear(device, is_latched);
        else
                device_faults_read(device);
        device_space_read(device, record);
}

void device_faults_list(const struct managed_device *device, struct device_faults *ret)
{
        fault_numbers(device->faults.reports, ret);
}

int device_faults_durable(const struct managed_device *device, const struct device_record *record _unused_,
        struct device_condition *ret)
{
        return fault_condition(device->faults.reports, REGION_FAULT_FLUSH, device->id.name, ret);
}

int device_faults_whole(const struct managed_device *device, const struct device_record *record _unused_,
        struct device_condition *ret)
{
        return fault_condition(device->faults.reports, REGION_FAULT_CUT, device->id.name, ret);
}
