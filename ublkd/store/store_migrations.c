/* SPDX-License-Identifier: MIT */
/* The tables of the database, version by version. */
#include "ublkd/store/store_migrations.h"

#include "ublkd/base/cleanup.h"

const char *const store_migrations[] = {
        "CREATE TABLE store (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL) STRICT;"
        "INSERT INTO store VALUES (1, 0);"
        "CREATE TABLE device ("
        " name TEXT PRIMARY KEY NOT NULL,"
        " uid TEXT NOT NULL UNIQUE,"
        " generation INTEGER NOT NULL,"
        " revision INTEGER NOT NULL,"
        " epoch INTEGER NOT NULL,"
        " number INTEGER UNIQUE,"     /* NULL: none yet */
        " deleting INTEGER NOT NULL," /* 2: even if the disk has openers */
        " recover_requested INTEGER NOT NULL,"
        " held_boot TEXT NOT NULL,"
        " created_at INTEGER NOT NULL,"
        " spec TEXT NOT NULL"
        ") STRICT, WITHOUT ROWID;",
        "ALTER TABLE device ADD COLUMN restart INTEGER NOT NULL DEFAULT 0;",
        "ALTER TABLE store ADD COLUMN compacted INTEGER NOT NULL DEFAULT 0;" /* events up to that revision */
        "CREATE TABLE event ("
        " first_revision INTEGER PRIMARY KEY NOT NULL,"
        " revision INTEGER NOT NULL,"
        " first_at INTEGER NOT NULL,"
        " last_at INTEGER NOT NULL,"
        " count INTEGER NOT NULL,"
        " type TEXT NOT NULL,"
        " device TEXT NOT NULL,"
        " uid TEXT NOT NULL,"
        " reason TEXT NOT NULL,"
        " message TEXT NOT NULL,"
        " labels TEXT" /* NULL: none */
        ") STRICT;",
        "ALTER TABLE device ADD COLUMN restart_refused INTEGER NOT NULL DEFAULT 0;",
        /* struct backing_identity; the basis 0 and empty tokens: none */
        "ALTER TABLE device ADD COLUMN backing_basis INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE device ADD COLUMN backing_is_disk INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE device ADD COLUMN backing_now TEXT NOT NULL DEFAULT '';"
        "ALTER TABLE device ADD COLUMN backing_lasting TEXT NOT NULL DEFAULT '';"
        "ALTER TABLE device ADD COLUMN backing_boot TEXT NOT NULL DEFAULT '';",
        /* identity of the database */
        ("ALTER TABLE store ADD COLUMN database TEXT NOT NULL DEFAULT '';"
         "UPDATE store SET database = lower(hex(randomblob(16)));"),
        /* the file that owns the device; '': none */
        "ALTER TABLE device ADD COLUMN source TEXT NOT NULL DEFAULT '';",
        /* boot id in which the disk was stopped; '': never, or started again */
        "ALTER TABLE device ADD COLUMN stopped_boot TEXT NOT NULL DEFAULT '';",
};
const size_t store_migration_count = ARRAY_SIZE(store_migrations);
