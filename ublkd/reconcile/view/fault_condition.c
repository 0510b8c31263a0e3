/* SPDX-License-Identifier: MIT */
/* Reports the faults of a backing store that lose acknowledged data. */
#include "ublkd/reconcile/view/fault_condition.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/values/json_time.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum condition_reason reasons[] = {
        [REGION_FAULT_FLUSH] = REASON_FLUSH_FAILED,
        [REGION_FAULT_CUT] = REASON_BACKING_TRUNCATED,
};
_Static_assert(ARRAY_SIZE(reasons) == _REGION_FAULT_MAX, "every fault has a reason");

enum condition_reason fault_reason(enum region_fault fault)
{
        return reasons[fault];
}

/* Write " at 2026-11-22T10:00:00Z"; "" if the time is unknown. */
static void format_time(uint64_t at, char text[static 32])
{
        char time[TIME_TEXT_SIZE];

        text[0] = '\0';
        if (at > 0 && time_format(at, time))
                snprintf(text, 32, " at %.19sZ", time);
}

static int explain_flush(const struct fault_report *report, char **ret)
{
        char when[32];

        format_time(report->at, when);
        if (report->op == STATS_OTHER && report->error == ENODATA) /* region_kept.c, disk_start.c */
                return asprintf(ret,
                        "The memory that the target kept for the disk was lost%s. Data that was written "
                        "before "
                        "may be lost, so every flush and every write with FUA fails.",
                        when);
        return asprintf(ret,
                "A %s failed%s: %s. Data that was written before may be lost, so every flush and every write "
                "with FUA fails.",
                report->op == STATS_FLUSH ? "flush" : "write to stable storage", when,
                strerror(report->error));
}

static int explain_cut(const struct fault_report *report, char **ret)
{
        char when[32];

        format_time(report->at, when);
        return asprintf(ret,
                "The backing store was cut off under the disk; it had %llu bytes when that was seen%s. "
                "Acknowledged data is lost, so all I/O fails.",
                (unsigned long long)report->detail, when);
}

int fault_explain(enum region_fault fault, const struct fault_report *report, char **ret)
{
        static int (*const explainers[_REGION_FAULT_MAX])(const struct fault_report *report, char **ret) = {
                [REGION_FAULT_FLUSH] = explain_flush, [REGION_FAULT_CUT] = explain_cut};

        if (explainers[fault](report, ret) >= 0)
                return 0;
        *ret = NULL;
        return -ENOMEM;
}

void fault_numbers(const struct fault_report reports[static _REGION_FAULT_MAX], struct device_faults *ret)
{
        *ret = (struct device_faults){
                .flush = reports[REGION_FAULT_FLUSH].number,
                .cut = reports[REGION_FAULT_CUT].number,
                .flush_at = reports[REGION_FAULT_FLUSH].at,
                .cut_at = reports[REGION_FAULT_CUT].at,
        };
}

int fault_condition(const struct fault_report reports[static _REGION_FAULT_MAX], enum region_fault fault,
        const char *name, struct device_condition *ret)
{
        /* In this order: without a worker an unmount can hang, and a worker needs the full size. */
        static const char *const advice[_REGION_FAULT_MAX] = {
                [REGION_FAULT_FLUSH] =
                        "Check the backing store, and what is on the disk; then accept the loss with",
                [REGION_FAULT_CUT] =
                        "Restore the store in place to its full size, from a copy if there is one (a file "
                        "that is only extended reads as zeroes there). All I/O still fails then. After that "
                        "unmount the disk, and accept the loss with"};
        char token[WRITE_ERRORS_TOKEN_SIZE];
        struct device_faults faults;
        _cleanup_free_ char *text = NULL;

        if (reports[fault].number == 0)
                return 0;
        if (fault_explain(fault, &reports[fault], &text) < 0)
                return -ENOMEM;
        fault_numbers(reports, &faults);
        write_errors_token(&faults, token);
        return device_condition_set(ret, CONDITION_FALSE, reasons[fault],
                "%s %s 'ublkctl restart --accept-write-errors=%s %s' (POST "
                "/devices/%s/restart?accept-write-errors=%s).",
                text, advice[fault], token, name, name, token);
}
