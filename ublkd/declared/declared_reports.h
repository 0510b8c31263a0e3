/* SPDX-License-Identifier: MIT */
/* What is wrong with devices that files describe: each report is of a device, and goes when its next turn begins. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct problem_list;

struct declared_report {
        char *name; /* of the device; "" for the reading of the files */
        char *reason, *text;
};

/* Zero-initialise. */
struct declared_reports {
        struct declared_report *items;
        size_t count;
};

/* Add copies. On ENOMEM the report is lost. */
void declared_reports_add(
        struct declared_reports *reports, const char *name, const char *reason, const char *text);
/* Drop those of `name`. Return whether there were any. */
bool declared_reports_drop(struct declared_reports *reports, const char *name);
/* Drop all. */
void declared_reports_clear(struct declared_reports *reports);

/* Append all of them to `list`. Return 0 or -ENOMEM. */
int declared_reports_list(const struct declared_reports *reports, struct problem_list *list);
