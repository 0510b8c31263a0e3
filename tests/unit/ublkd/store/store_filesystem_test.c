/* SPDX-License-Identifier: MIT */
/* The note of a file system that ublkd makes: it is there after a restart, and in what clients see. */
#include "tests/unit/ublkd/store/store_directory.h"

#include "tests/unit/check.h"
#include "tests/unit/put_device.h"
#include "ublkd/base/cleanup.h"

#include <string.h>

#define BEGUN "ext4 begun 11111111-2222-4333-8444-555555555555"
#define MADE "ext4 made 11111111-2222-4333-8444-555555555555"

static void check_shown(const struct device_store *store, const char *state)
{
        cJSON *device = device_record_to_json(device_store_get(store, "data"), READER_OF_ALL);
        const cJSON *shown = cJSON_GetObjectItemCaseSensitive(
                cJSON_GetObjectItemCaseSensitive(device, "status"), "filesystem");

        if (state) {
                CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(shown, "type")), "ext4");
                CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(shown, "state")), state);
        } else
                CHECK(cJSON_IsNull(shown));
        cJSON_Delete(device);
}

static void test_the_note_stays(const char *directory)
{
        struct device_store *store = open_store(directory);

        put_null_disk(store, "data", "");
        CHECK_INT(device_store_set_filesystem(store, "none", BEGUN), -ENOENT);
        check_shown(store, NULL);
        CHECK_INT(device_store_set_filesystem(store, "data", BEGUN), 0);
        device_store_free(store);
        store = open_store(directory);
        CHECK_STR(device_store_get(store, "data")->filesystem, BEGUN);
        check_shown(store, "begun");
        CHECK_INT(device_store_set_filesystem(store, "data", MADE), 0);
        put_null_disk(store, "data", ",\"labels\":{\"a\":\"b\"}");
        device_store_free(store);
        store = open_store(directory);
        CHECK_STR(device_store_get(store, "data")->filesystem, MADE);
        check_shown(store, "made");
        CHECK_INT(device_store_remove(store, "data"), 0);
        put_null_disk(store, "data", ""); /* another device of the name */
        check_shown(store, NULL);
        device_store_free(store);
}

static void test_each_change_is_an_event(const char *directory)
{
        struct device_store *store = open_store(directory);
        const struct event_log *events;

        put_null_disk(store, "data", "");
        CHECK_INT(device_store_set_filesystem(store, "data", BEGUN), 0);
        CHECK_INT(device_store_set_filesystem(store, "data", MADE), 0);
        events = device_store_events(store);
        CHECK_INT(event_log_at(events, event_log_count(events) - 2)->reason, REASON_FILE_SYSTEM_BEGUN);
        CHECK_INT(event_log_at(events, event_log_count(events) - 1)->reason, REASON_FILE_SYSTEM_MADE);
        device_store_free(store);
}

/* What was begun was begun on the store before: on another one nothing is made again. What was made is lost. */
static void test_another_store_was_not_begun(const char *directory)
{
        struct device_store *store = open_store(directory);

        put_device(store, "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"path\":\"/srv/a\"}}");
        CHECK_INT(device_store_set_filesystem(store, "data", BEGUN), 0);
        put_device(store, "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"path\":\"/srv/"
                          "a\"},\"labels\":{\"a\":\"b\"}}");
        CHECK_STR(device_store_get(store, "data")->filesystem, BEGUN);
        put_device(store, "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"path\":\"/srv/b\"}}");
        CHECK_STR(device_store_get(store, "data")->filesystem, "");
        check_shown(store, NULL);
        device_store_free(store);
        store = open_store(directory);
        check_shown(store, NULL);
        CHECK_INT(device_store_set_filesystem(store, "data", MADE), 0);
        put_device(store, "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"path\":\"/srv/a\"}}");
        CHECK_STR(device_store_get(store, "data")->filesystem, MADE);
        device_store_free(store);
}

static void test_a_database_of_an_older_ublkd(const char *directory)
{
        struct device_store *store = open_store(directory);

        put_null_disk(store, "data", "");
        device_store_free(store);
        execute(directory, "ALTER TABLE device DROP COLUMN filesystem");
        store = open_store(directory);
        check_shown(store, NULL);
        CHECK_INT(device_store_set_filesystem(store, "data", MADE), 0);
        device_store_free(store);
        store = open_store(directory);
        check_shown(store, "made");
        device_store_free(store);
}

/* "b d": the names of those that are mounted. */
static void check_mounted(const struct device_store *store, const char *wanted)
{
        char names[64] = "";

        DEVICE_STORE_FOREACH_MOUNTED (record, store)
                snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", *names ? " " : "",
                        record->name);
        CHECK_STR(names, wanted);
}

static void test_those_that_are_mounted(const char *directory)
{
        static const char *const names[] = {"a", "b", "c", "d"};
        struct device_store *store = open_store(directory);

        check_mounted(store, "");
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                put_null_disk(store, names[i], "");
                CHECK_INT(device_store_set_mount(store, names[i], "/mnt"), 0);
        }
        CHECK_INT(device_store_set_mount(store, "none", "/mnt"), -ENOENT);
        check_mounted(store, "a b c d");
        CHECK_INT(device_store_set_mount(store, "a", ""), 0);
        CHECK_INT(device_store_set_mount(store, "a", ""), 0);
        CHECK_INT(device_store_set_mount(store, "c", "/other"), 0);
        put_null_disk(store, "c", ",\"labels\":{\"x\":\"y\"}");
        check_mounted(store, "b c d");
        CHECK_INT(device_store_remove(store, "c"), 0);
        check_mounted(store, "b d");
        DEVICE_STORE_FOREACH_MOUNTED (record, store)
                CHECK_INT(device_store_set_mount(store, record->name, ""), 0);
        check_mounted(store, "");
        device_store_free(store);
}

int main(void)
{
        in_a_new_directory(test_those_that_are_mounted);
        in_a_new_directory(test_the_note_stays);
        in_a_new_directory(test_each_change_is_an_event);
        in_a_new_directory(test_another_store_was_not_begun);
        in_a_new_directory(test_a_database_of_an_older_ublkd);
        return check_report();
}
