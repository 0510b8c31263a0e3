/* SPDX-License-Identifier: MIT */
/* What is wrong with devices that files describe. */
#include "ublkd/declared/declared_reports.h"

#include "ublkd/base/problem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void report_clear(struct declared_report *report)
{
        free(report->name);
        free(report->reason);
        free(report->text);
        *report = (struct declared_report){};
}

void declared_reports_add(
        struct declared_reports *reports, const char *name, const char *reason, const char *text)
{
        struct declared_report report = {strdup(name), strdup(reason), strdup(text)};
        struct declared_report *items =
                reallocarray(reports->items, reports->count + 1, sizeof(*reports->items));

        if (items)
                reports->items = items;
        if (items && report.name && report.reason && report.text)
                items[reports->count++] = report;
        else
                report_clear(&report);
}

bool declared_reports_drop(struct declared_reports *reports, const char *name)
{
        size_t kept = 0, before = reports->count;

        for (size_t i = 0; i < before; i++)
                if (strcmp(reports->items[i].name, name) == 0)
                        report_clear(&reports->items[i]);
                else
                        reports->items[kept++] = reports->items[i];
        reports->count = kept;
        return kept < before;
}

void declared_reports_clear(struct declared_reports *reports)
{
        for (size_t i = 0; i < reports->count; i++)
                report_clear(&reports->items[i]);
        free(reports->items);
        *reports = (struct declared_reports){};
}

int declared_reports_list(const struct declared_reports *reports, struct problem_list *list)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < reports->count; i++)
                r = problem_add(list, EINVAL, "", reports->items[i].reason, "%s", reports->items[i].text);
        return r;
}
