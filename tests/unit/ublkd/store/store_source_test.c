/* SPDX-License-Identifier: MIT */
/* The file that owns a device: kept over a restart and an upgrade of the database, and respected by every change. */
#include "ublkd/store/device_store.h"

#include "tests/unit/check.h"
#include "tests/unit/put_device.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

static struct device_store *open_store(const char *directory)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct device_store *store = NULL;

        CHECK_INT(device_store_open(directory, &store, &problems), 0);
        return store;
}

/* Put a null disk of `size` from the file `source` (NULL: as a client). */
static int put(struct device_store *store, const char *name, const char *size, const char *source,
        enum put_outcome *ret)
{
        const struct put_condition condition = {.mode = PUT_CREATE_OR_REPLACE, .source = source};
        _cleanup_problems_ struct problem_list problems = {};
        const struct device_record *record;
        struct device_spec *spec = NULL;
        char text[160];
        cJSON *document;
        int r;

        snprintf(text, sizeof(text), "{\"name\":\"%s\",\"target\":{\"type\":\"null\"},\"size\":\"%s\"}", name,
                size);
        document = cJSON_Parse(text);
        CHECK_INT(device_spec_parse(document, NULL, &spec, &problems), 0);
        cJSON_Delete(document);
        r = device_store_put(store, spec, &condition, &record, ret, &problems);
        if (r < 0) {
                device_spec_free(spec);
                CHECK(problems.count == 1); /* it says why */
        } else
                CHECK(device_record_has_source(record, source) || !source);
        return r;
}

static void test_only_the_file_changes_it(void)
{
        const struct device_backend *backend;
        struct device_store *store;
        enum put_outcome outcome;
        void *context;

        CHECK_INT(store_memory_open(&backend, &context), 0);
        CHECK_INT(device_store_new(backend, context, &store), 0);
        CHECK_INT(put(store, "a", "1MiB", "/etc/d/a.json", &outcome), 0);
        CHECK_INT(outcome, PUT_CREATED);
        CHECK_INT(put(store, "a", "2MiB", NULL, &outcome), -EPERM);
        CHECK_INT(put(store, "a", "1MiB", NULL, &outcome), 0); /* a retry changes nothing */
        CHECK_INT(outcome, PUT_UNCHANGED);
        CHECK_STR(device_store_get(store, "a")->source, "/etc/d/a.json");
        CHECK_INT(put(store, "a", "2MiB", "/etc/d/a.json", &outcome), 0);
        CHECK_INT(outcome, PUT_REPLACED);
        CHECK_INT(device_store_get(store, "a")->generation, 2);
        CHECK_INT(put(store, "a", "2MiB", "/etc/d/b.json", &outcome), 0); /* the file was renamed */
        CHECK_INT(outcome, PUT_UNCHANGED);
        CHECK_STR(device_store_get(store, "a")->source, "/etc/d/b.json");
        CHECK_INT(device_store_get(store, "a")->generation, 2);
        CHECK_INT(put(store, "c", "1MiB", NULL, &outcome), 0);
        CHECK_INT(put(store, "c", "1MiB", "/etc/d/c.json", &outcome), -EEXIST); /* it is a client's */
        CHECK(device_store_get(store, "c")->source == NULL);
        device_store_free(store);
}

static void count_events(void *userdata, const struct store_event *event)
{
        *(unsigned *)userdata += event->kind == STORE_NOTED;
}

static void test_after_the_file_has_gone(void)
{
        const struct device_backend *backend;
        struct device_store *store;
        enum put_outcome outcome;
        unsigned events = 0;
        void *context;

        CHECK_INT(store_memory_open(&backend, &context), 0);
        CHECK_INT(device_store_new(backend, context, &store), 0);
        CHECK_INT(device_store_subscribe(store, count_events, &events), 0);
        CHECK_INT(put(store, "a", "1MiB", "/etc/d/a.json", &outcome), 0);
        CHECK_INT(device_store_set_source_state(store, "a", SOURCE_GONE, "It is gone, and in use."), 0);
        CHECK_INT(device_store_set_source_state(store, "a", SOURCE_GONE, "It is gone, and in use."), 0);
        CHECK_INT(events, 1); /* the same again makes no event */
        CHECK(!device_record_is_owned(device_store_get(store, "a")));
        CHECK_INT(put(store, "a", "1MiB", NULL, &outcome), 0); /* a client takes it over */
        CHECK(device_store_get(store, "a")->source == NULL);
        CHECK(device_store_get(store, "a")->source_trouble == NULL);
        CHECK_INT(put(store, "a", "2MiB", "/etc/d/a.json", &outcome), -EEXIST);
        CHECK_INT(put(store, "b", "1MiB", "/etc/d/b.json", &outcome), 0);
        CHECK_INT(device_store_withdraw(store, "b"), 0);
        CHECK(device_store_get(store, "b")->deleting && !device_store_get(store, "b")->forced);
        CHECK_INT(device_store_withdraw(store, "none"), -ENOENT);
        device_store_free(store);
}

/* The file describes the device by its old name only. */
static void test_an_adoption(void)
{
        static const char text[] = "{\"name\":\"a\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}";
        static const char *const names[] = {"a", "other"};
        const struct device_backend *backend;
        void *context;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                struct device_record from = {.name = (char *)"a",
                        .uid = "0123abcd-0000-4000-8000-000000000000",
                        .generation = 1,
                        .epoch = 1,
                        .number = 0,
                        .source = (char *)"/etc/d/a.json"};
                const struct device_record *record = NULL;
                struct device_store *store;

                CHECK_INT(store_memory_open(&backend, &context), 0);
                CHECK_INT(device_store_new(backend, context, &store), 0);
                if (CHECK_INT(device_store_adopt(store, &from, text, names[i], &record), 0))
                        CHECK(device_record_has_source(record, "/etc/d/a.json") == (i == 0));
                device_store_free(store);
        }
}

static void execute(const char *database, const char *text)
{
        sqlite3 *db = NULL;
        char *message = NULL;

        CHECK_INT(sqlite3_open(database, &db), SQLITE_OK);
        if (!CHECK_INT(sqlite3_exec(db, text, NULL, NULL, &message), SQLITE_OK))
                fprintf(stderr, "  %s\n", message);
        sqlite3_free(message);
        sqlite3_close(db);
}

static void test_the_database(void)
{
        char directory[] = "/tmp/store_source_test.XXXXXX", database[64], log[80];
        struct device_store *store;
        enum put_outcome outcome;

        if (!mkdtemp(directory))
                abort();
        snprintf(database, sizeof(database), "%s/ublkd.db", directory);
        store = open_store(directory);
        CHECK_INT(put(store, "a", "1MiB", "/etc/d/a.json", &outcome), 0);
        CHECK_INT(put(store, "b", "1MiB", NULL, &outcome), 0);
        CHECK_INT(put(store, "c", "1MiB", "/etc/d/c.json", &outcome), 0);
        CHECK_INT(put(store, "c", "1MiB", "/run/d/c.json", &outcome), 0); /* only the file changes */
        device_store_free(store);
        store = open_store(directory);
        CHECK_STR(device_store_get(store, "a")->source, "/etc/d/a.json");
        CHECK(device_store_get(store, "b")->source == NULL);
        CHECK_STR(device_store_get(store, "c")->source, "/run/d/c.json");
        CHECK_INT(put(store, "a", "2MiB", NULL, &outcome), -EPERM);
        device_store_free(store);
        /* As the version before this one has left it. */
        execute(database,
                "ALTER TABLE device DROP COLUMN source; ALTER TABLE device DROP COLUMN "
                "stopped_boot; ALTER TABLE device DROP COLUMN temporary_boot; PRAGMA user_version = 6");
        store = open_store(directory);
        if (CHECK_INT(device_store_count(store), 3))
                CHECK(device_store_get(store, "a")->source == NULL);
        CHECK_INT(put(store, "a", "2MiB", NULL, &outcome), 0);
        CHECK_INT(put(store, "d", "1MiB", "/etc/d/d.json", &outcome), 0);
        device_store_free(store);
        CHECK_INT(unlink(database), 0);
        snprintf(log, sizeof(log), "%s-wal", database);
        (void)unlink(log);
        CHECK_INT(rmdir(directory), 0);
}

int main(void)
{
        test_only_the_file_changes_it();
        test_after_the_file_has_gone();
        test_an_adoption();
        test_the_database();
        return check_report();
}
