/* SPDX-License-Identifier: MIT */
/* The events in the database. */
#include "ublkd/store/store_sqlite_events.h"

#include "ublkd/base/cleanup.h"

#include <stdio.h>

int event_statements_prepare(sqlite3 *db, struct event_statements *ret)
{
        const struct {
                sqlite3_stmt **statement;
                const char *text;
        } table[] = {
                {&ret->put,
                 "INSERT INTO event (first_revision, revision, first_at, last_at, count, type, "
                        "device, uid,"
                        " reason, message, labels, tenant, account) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
                        "?9, ?10, ?11, ?12, ?13)"
                        " ON CONFLICT (first_revision) DO UPDATE SET revision = excluded.revision,"
                        " first_at = excluded.first_at, last_at = excluded.last_at, count = excluded.count,"
                        " type = excluded.type, device = excluded.device, uid = excluded.uid,"
                        " reason = excluded.reason, message = excluded.message,"
                        " labels = excluded.labels, tenant = excluded.tenant,"
                        " account = excluded.account"                                               },
                {&ret->drop,      "DELETE FROM event WHERE revision <= ?1"                          },
                {&ret->drop_of,   "DELETE FROM event WHERE revision <= ?2 AND (account = ?1"
                                " OR (account = '' AND tenant = ?1))"},
                {&ret->compacted, "UPDATE store SET compacted = ?1 WHERE compacted <> ?1"           },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                int result = sqlite3_prepare_v3(
                        db, table[i].text, -1, SQLITE_PREPARE_PERSISTENT, table[i].statement, NULL);

                if (result != SQLITE_OK)
                        return result;
        }
        return SQLITE_DONE;
}

void event_statements_clear(struct event_statements *statements)
{
        (void)sqlite3_finalize(statements->put);
        (void)sqlite3_finalize(statements->drop);
        (void)sqlite3_finalize(statements->drop_of);
        (void)sqlite3_finalize(statements->compacted);
        *statements = (struct event_statements){};
}

static int run(sqlite3_stmt *statement)
{
        int result = sqlite3_step(statement);

        (void)sqlite3_reset(statement); /* returns the error of the step again */
        (void)sqlite3_clear_bindings(statement);
        return result;
}

int event_statements_put(const struct event_statements *statements, const struct device_event *event)
{
        sqlite3_stmt *put = statements->put;

        /* A bind fails only for a wrong index. The bound values live until run() returns. */
        (void)sqlite3_bind_int64(put, 1, (sqlite3_int64)event->first_revision);
        (void)sqlite3_bind_int64(put, 2, (sqlite3_int64)event->revision);
        (void)sqlite3_bind_int64(put, 3, (sqlite3_int64)event->first_at);
        (void)sqlite3_bind_int64(put, 4, (sqlite3_int64)event->last_at);
        (void)sqlite3_bind_int64(put, 5, (sqlite3_int64)event->count);
        (void)sqlite3_bind_text(put, 6, event_type_to_string(event->type), -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(put, 7, event->device, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(put, 8, event->uid, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(put, 9, reason_to_string(event->reason), -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(put, 10, event->message, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(put, 11, event->labels, -1, SQLITE_STATIC); /* NULL for NULL */
        (void)sqlite3_bind_text(put, 12, event->tenant, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(put, 13, event->account, -1, SQLITE_STATIC);
        return run(put);
}

int event_statements_drop(const struct event_statements *statements, uint64_t compacted)
{
        int result;

        if (compacted == 0)
                return SQLITE_DONE;
        (void)sqlite3_bind_int64(statements->drop, 1, (sqlite3_int64)compacted);
        result = run(statements->drop);
        if (result != SQLITE_DONE)
                return result;
        (void)sqlite3_bind_int64(statements->compacted, 1, (sqlite3_int64)compacted);
        return run(statements->compacted);
}

int event_statements_drop_of(const struct event_statements *statements, const struct event_floor *floor)
{
        (void)sqlite3_bind_text(statements->drop_of, 1, floor->account, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(statements->drop_of, 2, (sqlite3_int64)floor->revision);
        return run(statements->drop_of);
}

static char *column_text(sqlite3_stmt *row, int column)
{
        return (char *)sqlite3_column_text(row, column);
}

static int load_row(sqlite3_stmt *row, int (*each)(void *, const struct device_event *), void *userdata)
{
        struct device_event event = {
                .first_revision = (uint64_t)sqlite3_column_int64(row, 0),
                .revision = (uint64_t)sqlite3_column_int64(row, 1),
                .first_at = (uint64_t)sqlite3_column_int64(row, 2),
                .last_at = (uint64_t)sqlite3_column_int64(row, 3),
                .count = (uint64_t)sqlite3_column_int64(row, 4),
                .type = event_type_from_string(column_text(row, 5)),
                .device = column_text(row, 6), /* borrowed: `each` copies */
                .uid = column_text(row, 7),
                .message = column_text(row, 9),
                .labels = column_text(row, 10),
        };
        const char *reason = column_text(row, 8), *tenant = column_text(row, 11),
                   *account = column_text(row, 12);

        if (!event.device || !event.uid || !reason || !event.message || !tenant || !account)
                return -ENOMEM; /* the columns are NOT NULL */
        snprintf(event.tenant, sizeof(event.tenant), "%s", tenant);
        snprintf(event.account, sizeof(event.account), "%s", account);
        event.reason = reason_from_string(reason);
        return each(userdata, &event);
}

static int load_compacted(sqlite3 *db, uint64_t *ret)
{
        sqlite3_stmt *row = NULL;
        int result = sqlite3_prepare_v2(db, "SELECT compacted FROM store", -1, &row, NULL);

        if (result == SQLITE_OK)
                result = sqlite3_step(row);
        if (result == SQLITE_ROW)
                *ret = (uint64_t)sqlite3_column_int64(row, 0);
        (void)sqlite3_finalize(row);
        return result == SQLITE_ROW ? SQLITE_DONE : result;
}

int event_rows_load(sqlite3 *db, int (*each)(void *userdata, const struct device_event *event),
        void *userdata, uint64_t *ret_compacted, int *ret_error)
{
        sqlite3_stmt *rows = NULL;
        int error = 0, result = sqlite3_prepare_v2(db,
                               "SELECT first_revision, revision, first_at, last_at, count, type, device, uid,"
                               " reason, message, labels, tenant, account FROM event ORDER BY revision",
                               -1, &rows, NULL);

        if (result == SQLITE_OK)
                while (error == 0 && (result = sqlite3_step(rows)) == SQLITE_ROW)
                        error = load_row(rows, each, userdata);
        (void)sqlite3_finalize(rows);
        *ret_error = error;
        return error < 0 ? SQLITE_DONE : result != SQLITE_DONE ? result : load_compacted(db, ret_compacted);
}
