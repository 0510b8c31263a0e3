/* SPDX-License-Identifier: MIT */
/* The identities of a list of stores: over restarts of ublkd, beside an older one, and damaged. */
#include "ublkd/store/record_stores.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/store/store_directory.h"

#include <stdlib.h>
#include <string.h>

#define BOOT "11111111-2222-4333-8444-555555555555"

static const struct backing_identity identities[] = {
        {.basis = BACKING_FILE_HANDLE, .boot = "a",     .lasting = "file:a"  },
        {.basis = BACKING_DISK_SERIAL, .is_disk = true, .lasting = "serial:b"}
};

static void put(struct device_store *store)
{
        static const char text[] =
                "{\"target\":{\"type\":\"stripe\",\"children\":[{\"type\":\"loop\",\"path\":"
                "\"/a\"},{\"type\":\"loop\",\"path\":\"/b\"}]}}";
        _cleanup_problems_ struct problem_list problems = {};
        const struct put_condition condition = {.mode = PUT_CREATE};
        const struct device_record *record;
        struct device_spec *spec = NULL;
        cJSON *document = cJSON_Parse(text);
        enum put_outcome outcome;

        CHECK_INT(device_spec_parse(document, "data", &spec, &problems), 0);
        cJSON_Delete(document);
        CHECK_INT(device_store_put(store, spec, &condition, &record, &outcome, &problems), 0);
        CHECK_INT(device_store_set_listed(store, "data", identities, 2, BOOT), 0);
}

static void check_identity(const struct device_store *store, unsigned number)
{
        const char *boot;
        const struct backing_identity *identity =
                device_record_backing(device_store_get(store, "data"), number, &boot);

        CHECK(backing_identity_equal(identity, &identities[number]));
        CHECK_STR(boot, BOOT);
}

static void test_they_stay(const char *directory)
{
        struct device_store *store = open_store(directory);

        put(store);
        CHECK_INT(device_store_set_listed(store, "absent", identities, 2, BOOT), -ENOENT);
        device_store_free(store);
        store = open_store(directory);
        check_identity(store, 0);
        check_identity(store, 1);
        device_store_free(store);
}

/* An older ublkd has written the record: it knows nothing of the column, and leaves it as it is. */
static void test_an_older_ublkd_leaves_them(const char *directory)
{
        struct device_store *store = open_store(directory);

        put(store);
        device_store_free(store);
        execute(directory, "UPDATE device SET revision = revision, restart = 7");
        store = open_store(directory);
        CHECK_INT(device_store_get(store, "data")->restart, 7);
        check_identity(store, 0);
        check_identity(store, 1);
        device_store_free(store);
}

/* Without its identities any store would do. */
static void test_what_cannot_be_read_is_quarantined(const char *directory)
{
        static const char *const damaged[] = {"x", "{}", "[1]", "[{\"path\":\"/a\"}]"};
        struct device_store *store = open_store(directory);

        put(store);
        device_store_free(store);
        for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
                char statement[128];

                snprintf(statement, sizeof(statement), "UPDATE device SET stores = '%s'", damaged[i]);
                execute(directory, statement);
                store = open_store(directory);
                CHECK(device_store_get(store, "data")->quarantine != NULL);
                device_store_free(store);
        }
}

static void test_as_text(void)
{
        _cleanup_record_stores_ struct record_stores *stores = NULL, *more = NULL, *read = NULL;
        _cleanup_free_ char *text = NULL;

        CHECK_INT(record_stores_with(NULL, "/a", &identities[0], BOOT, &stores), 0);
        CHECK_INT(record_stores_with(stores, "/b", &identities[1], "", &more), 0);
        CHECK_INT(record_stores_print(more, &text), 0);
        CHECK_INT(record_stores_parse(text, &read), 0);
        CHECK(record_stores_equal(more, read));
        CHECK(!record_stores_equal(stores, read));
        CHECK(!record_stores_find(read, "/c"));
}

int main(void)
{
        in_a_new_directory(test_they_stay);
        in_a_new_directory(test_an_older_ublkd_leaves_them);
        in_a_new_directory(test_what_cannot_be_read_is_quarantined);
        test_as_text();
        return check_report();
}
