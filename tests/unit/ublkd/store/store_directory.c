/* SPDX-License-Identifier: MIT */
/* A store in a directory of a test. */
#include "tests/unit/ublkd/store/store_directory.h"

#include "tests/unit/check.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

void in_a_new_directory(void (*test)(const char *directory))
{
        char directory[] = "/tmp/store_test.XXXXXX", file[64];
        static const char *const names[] = {"ublkd.db", "ublkd.db-wal"};

        if (!mkdtemp(directory))
                abort();
        test(directory);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                snprintf(file, sizeof(file), "%s/%s", directory, names[i]);
                (void)unlink(file);
        }
        CHECK_INT(rmdir(directory), 0);
}

struct device_store *open_store(const char *directory)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct device_store *store = NULL;

        if (!CHECK_INT(device_store_open(directory, &store, &problems), 0))
                abort();
        return store;
}

void execute(const char *directory, const char *text)
{
        char database[64];
        sqlite3 *db = NULL;

        snprintf(database, sizeof(database), "%s/ublkd.db", directory);
        CHECK_INT(sqlite3_open(database, &db), SQLITE_OK);
        CHECK_INT(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
}
