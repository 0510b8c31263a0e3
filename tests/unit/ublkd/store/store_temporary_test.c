/* SPDX-License-Identifier: MIT */
/* Temporary devices: ublkd removes them after their boot, as any removal goes, and nothing else. */
#include "tests/unit/ublkd/store/store_directory.h"

#include "tests/unit/check.h"
#include "tests/unit/put_device.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* What the database looks like after a boot. */
static void boot(const char *directory)
{
        execute(directory, "UPDATE device SET temporary_boot = '00000000-0000-0000-0000-000000000001' "
                           "WHERE temporary_boot <> ''");
}

static bool is_being_removed(const struct device_store *store, const char *name)
{
        return device_store_get(store, name)->deleting;
}

static void check_newest_event(const struct device_store *store, const char *name)
{
        const struct event_log *events = device_store_events(store);
        const struct device_event *newest = event_log_at(events, event_log_count(events) - 1);

        CHECK_INT(newest->reason, REASON_BOOT_OVER);
        CHECK_STR(newest->device, name);
}

static void test_it_ends_with_the_boot(const char *directory)
{
        struct device_store *store = open_store(directory);

        CHECK_INT(put_null_disk(store, "gone", ",\"temporary\":true"), 0);
        CHECK_INT(put_null_disk(store, "kept", ",\"temporary\":true"), 0);
        CHECK_INT(put_null_disk(store, "kept", ",\"temporary\":false"), 0);
        CHECK_INT(put_null_disk(store, "plain", ""), 0);
        device_store_free(store);
        store = open_store(directory); /* in the same boot, as after a crash of ublkd */
        CHECK(!is_being_removed(store, "gone"));
        device_store_free(store);
        boot(directory);
        for (int start = 0; start < 2; start++) { /* the second: the power was cut before the removal */
                store = open_store(directory);
                CHECK(is_being_removed(store, "gone") && !device_store_get(store, "gone")->forced);
                CHECK(!is_being_removed(store, "kept") && !is_being_removed(store, "plain"));
                check_newest_event(store, "gone");
                device_store_free(store);
        }
        store = open_store(directory);
        CHECK_INT(device_store_remove(store, "gone"), 0);
        device_store_free(store);
        store = open_store(directory);
        CHECK_INT(device_store_count(store), 2);
        device_store_free(store);
}

static void test_a_change_makes_it_last(const char *directory)
{
        struct device_store *store = open_store(directory);

        CHECK_INT(put_null_disk(store, "made-lasting", ",\"temporary\":true"), 0);
        CHECK_INT(put_null_disk(store, "made-lasting", ""), 0);
        CHECK_INT(put_null_disk(store, "made-temporary", ""), 0);
        CHECK_INT(put_null_disk(store, "made-temporary", ",\"temporary\":true"), 0);
        device_store_free(store);
        boot(directory);
        store = open_store(directory);
        CHECK(!is_being_removed(store, "made-lasting") && is_being_removed(store, "made-temporary"));
        device_store_free(store);
}

/* Only its file removes such a device. */
static void test_a_device_of_a_file_stays(const char *directory)
{
        struct device_store *store = open_store(directory);

        CHECK_INT(put_null_disk(store, "of-a-file", ",\"temporary\":true"), 0);
        device_store_free(store);
        execute(directory,
                "UPDATE device SET source = '/etc/ublkd/devices.d/a.json' WHERE name = 'of-a-file'");
        boot(directory);
        store = open_store(directory);
        CHECK(!is_being_removed(store, "of-a-file"));
        device_store_free(store);
}

static int read_version(const char *directory)
{
        char database[64];
        sqlite3 *db = NULL;
        sqlite3_stmt *statement = NULL;
        int version;

        snprintf(database, sizeof(database), "%s/ublkd.db", directory);
        CHECK_INT(sqlite3_open(database, &db), SQLITE_OK);
        CHECK_INT(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &statement, NULL), SQLITE_OK);
        CHECK_INT(sqlite3_step(statement), SQLITE_ROW);
        version = sqlite3_column_int(statement, 0);
        sqlite3_finalize(statement);
        sqlite3_close(db);
        return version;
}

/* It does not know the column, and goes on with the database: the version is the one that it knows. */
static void test_an_older_ublkd_can_go_on(const char *directory)
{
        enum { VERSION_WITHOUT_TEMPORARY = 8 };
        struct device_store *store = open_store(directory);

        CHECK_INT(put_null_disk(store, "plain", ""), 0);
        device_store_free(store);
        CHECK_INT(read_version(directory), VERSION_WITHOUT_TEMPORARY);
        execute(directory, "ALTER TABLE device DROP COLUMN temporary_boot"); /* as the older one makes it */
        store = open_store(directory);
        CHECK_INT(put_null_disk(store, "gone", ",\"temporary\":true"), 0);
        device_store_free(store);
        CHECK_INT(read_version(directory), VERSION_WITHOUT_TEMPORARY);
        boot(directory);
        store = open_store(directory);
        CHECK(is_being_removed(store, "gone") && !is_being_removed(store, "plain"));
        device_store_free(store);
}

int main(void)
{
        in_a_new_directory(test_it_ends_with_the_boot);
        in_a_new_directory(test_a_change_makes_it_last);
        in_a_new_directory(test_a_device_of_a_file_stays);
        in_a_new_directory(test_an_older_ublkd_can_go_on);
        return check_report();
}
