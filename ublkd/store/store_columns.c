/* SPDX-License-Identifier: MIT */
/* Adds columns to a database that was written before they were thought of, or by an older ublkd since. */
#include "ublkd/store/store_columns.h"

#include "ublkd/base/cleanup.h"

/* clang-format off */
static const struct {
        const char *table, *name, *addition;
} columns[] = {
        /* boot id that a temporary device belongs to; '': it is not temporary */
        {"device", "temporary_boot", "ALTER TABLE device ADD COLUMN temporary_boot TEXT NOT NULL DEFAULT ''"},
        /* who owns the device; '': the administrators */
        {"device", "tenant", "ALTER TABLE device ADD COLUMN tenant TEXT NOT NULL DEFAULT ''"},
        /* the file system that ublkd makes on the disk; '': none */
        {"device", "filesystem", "ALTER TABLE device ADD COLUMN filesystem TEXT NOT NULL DEFAULT ''"},
        /* who wants that to stay mounted, in which boot; '': none */
        {"device", "mount_holders", "ALTER TABLE device ADD COLUMN mount_holders TEXT NOT NULL DEFAULT ''"},
        /* JSON: what clients have started, and what came of it; '': nothing */
        {"device", "actions", "ALTER TABLE device ADD COLUMN actions TEXT NOT NULL DEFAULT ''"},
        /* the backing stores of a disk with a list of them (record_stores.h); '': none */
        {"device", "stores", "ALTER TABLE device ADD COLUMN stores TEXT NOT NULL DEFAULT ''"},
        {"event", "tenant", "ALTER TABLE event ADD COLUMN tenant TEXT NOT NULL DEFAULT ''"},
        /* with whose events it counts (device_event.h); '': with those of the tenant */
        {"event", "account", "ALTER TABLE event ADD COLUMN account TEXT NOT NULL DEFAULT ''"},
};
/* clang-format on */

/* Return SQLITE_ROW: the table has the column; SQLITE_DONE: it has not; or an error. */
static int find_column(sqlite3 *db, const char *table, const char *name)
{
        sqlite3_stmt *statement = NULL;
        int result = sqlite3_prepare_v2(
                db, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2", -1, &statement, NULL);

        if (result == SQLITE_OK)
                result = sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
        if (result == SQLITE_OK)
                result = sqlite3_bind_text(statement, 2, name, -1, SQLITE_STATIC);
        if (result == SQLITE_OK)
                result = sqlite3_step(statement);
        (void)sqlite3_finalize(statement);
        return result;
}

int store_columns_add(sqlite3 *db)
{
        for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
                int result = find_column(db, columns[i].table, columns[i].name);

                if (result == SQLITE_DONE)
                        result = sqlite3_exec(db, columns[i].addition, NULL, NULL, NULL);
                if (result != SQLITE_OK && result != SQLITE_ROW)
                        return result;
        }
        return SQLITE_OK;
}
