/* SPDX-License-Identifier: MIT */
/* The events in the database. For store_sqlite.c only, which owns the transactions. All functions return a
 * result code of SQLite; SQLITE_DONE is success. */
#pragma once

#include "ublkd/model/device_event.h"
#include "ublkd/store/event_floors.h"

#include <sqlite3.h>

struct event_statements {
        sqlite3_stmt *put, *drop, *drop_of, *compacted;
};

/* Prepare the statements. *ret must be zeroed; clear it with event_statements_clear(), also on failure. */
int event_statements_prepare(sqlite3 *db, struct event_statements *ret);
void event_statements_clear(struct event_statements *statements);

/* Insert an event, or replace the one with the same first revision. */
int event_statements_put(const struct event_statements *statements, const struct device_event *event);
/* Delete the events with a revision up to `compacted`, and store that revision. */
int event_statements_drop(const struct event_statements *statements, uint64_t compacted);
/* Delete the events of a tenant up to its floor. */
int event_statements_drop_of(const struct event_statements *statements, const struct event_floor *floor);

/* Call `each` for every event until it fails. *ret_error: the -errno of `each`, or 0. */
int event_rows_load(sqlite3 *db, int (*each)(void *userdata, const struct device_event *event),
        void *userdata, uint64_t *ret_compacted, int *ret_error);
