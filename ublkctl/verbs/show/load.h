/* SPDX-License-Identifier: MIT */
/* The load of devices in an interval, as a table for people and as data. */
#pragma once

#include "ublkctl/client/call.h"
#include "ublkctl/verbs/show/rate.h"

enum { LOAD_HISTORY = 12 };

struct load {
        const char *name; /* owned by the stats */
        struct rate rate;
        double loads[LOAD_HISTORY]; /* requests per second of the last intervals, oldest first */
        size_t load_count;
};

/* Print a table of at most `lines` rows (0: all). If it is wider than `columns` (0: no limit), it lacks the least
 * important columns; never errors, reads, writes and what is in flight. The columns are the same, and at the same
 * places, for the same names. */
enum exit_status load_table_print(
        struct context *context, const struct load *loads, size_t count, size_t lines, size_t columns);

/* Print one interval: as one line of JSON, or as a document of YAML. seconds: its length. */
enum exit_status load_data_print(int format, const struct load *loads, size_t count, double seconds);
