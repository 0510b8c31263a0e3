/* SPDX-License-Identifier: MIT */
/* The events in the database. For store_sqlite.c only, which owns the transactions. All return a result code
 * of SQLite; SQLITE_DONE is success. */
#pragma once

#include "ublkd/model/device_event.h"

#include <sqlite3.h>

struct event_statements {
        sqlite3_stmt *put, *forget, *compacted;
};

/* `*ret` is zeroed before; to be released with event_statements_clear(), also on failure. */
int event_statements_prepare(sqlite3 *db, struct event_statements *ret);
void event_statements_clear(struct event_statements *statements);

/* Inserts, or replaces the one with the same first revision. */
int event_statements_put(const struct event_statements *statements, const struct device_event *event);
/* Forgets every event whose revision is not above `compacted`, and remembers that. */
int event_statements_forget(const struct event_statements *statements, uint64_t compacted);

/* Calls `each` for every event; *ret_error is what stopped it (-errno), 0 when nothing did. */
int event_rows_load(sqlite3 *db, int (*each)(void *userdata, const struct device_event *event),
        void *userdata, uint64_t *ret_compacted, int *ret_error);
