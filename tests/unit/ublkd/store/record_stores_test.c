/* SPDX-License-Identifier: MIT */
/* The identities of a list of stores: over restarts of ublkd, beside an older one, and damaged. */
#include "ublkd/store/record_stores.h"

#include "tests/unit/check.h"
#include "tests/unit/put_device.h"
#include "tests/unit/ublkd/store/store_directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BOOT "11111111-2222-4333-8444-555555555555"

static const struct backing_identity identities[] = {
        {.basis = BACKING_FILE_HANDLE, .boot = "a",     .lasting = "file:a"  },
        {.basis = BACKING_DISK_SERIAL, .is_disk = true, .lasting = "serial:b"}
};

/* A stripe over files with one letter each. */
static struct device_spec *spec_over(const char *letters)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct device_spec *spec = NULL;
        cJSON *document = cJSON_Parse("{\"target\":{\"type\":\"stripe\",\"children\":[]}}"),
              *children = cJSON_GetObjectItem(cJSON_GetObjectItem(document, "target"), "children");

        for (const char *letter = letters; *letter; letter++) {
                char path[] = {'/', *letter, '\0'};
                cJSON *child = cJSON_CreateObject();

                CHECK(cJSON_AddStringToObject(child, "type", "loop")
                        && cJSON_AddStringToObject(child, "path", path));
                CHECK(cJSON_AddItemToArray(children, child));
        }
        CHECK_INT(device_spec_parse(document, "data", &spec, &problems), 0);
        cJSON_Delete(document);
        return spec;
}

static int try_put(struct device_store *store, const char *one, const char *two)
{
        char text[256];

        snprintf(text, sizeof(text),
                "{\"name\":\"data\",\"target\":{\"type\":\"stripe\",\"children\":["
                "{\"type\":\"loop\",\"path\":\"%s\"},{\"type\":\"loop\",\"path\":\"%s\"}]}}",
                one, two);
        return put_device(store, text);
}

static void put(struct device_store *store)
{
        CHECK_INT(try_put(store, "/a", "/b"), 0);
        CHECK_INT(device_store_set_listed(store, "data", identities, 2, BOOT), 0);
}

/* ublkd has looked, and there is no disk. */
static void settle_without_disk(struct device_store *store)
{
        const struct device_status status = {.phase = PHASE_FAILED, .number = -1};

        CHECK_INT(device_store_set_status(store, "data", &status), 0);
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

/* An older ublkd has stored another spec since, with what it knows of: the identities of the other kind are those of
 * an earlier disk. */
static void test_those_of_an_earlier_disk_are_dropped(const char *directory)
{
        struct device_store *store = open_store(directory);

        put(store);
        device_store_free(store);
        execute(directory, "UPDATE device SET spec = '{\"name\":\"data\",\"target\":{\"type\":\"loop\","
                           "\"path\":\"/a\"}}'");
        store = open_store(directory);
        CHECK(!device_store_get(store, "data")->stores);
        settle_without_disk(store);
        CHECK_INT(try_put(store, "/c", "/a"), 0);
        for (unsigned i = 0; i < 2; i++)
                CHECK(backing_identity_is_empty(
                        device_record_backing(device_store_get(store, "data"), i, NULL)));
        device_store_free(store);
        execute(directory, "UPDATE device SET backing_lasting = 'file:c', backing_boot = 'x'");
        store = open_store(directory);
        CHECK(backing_identity_is_empty(&device_store_get(store, "data")->backing));
        CHECK_STR(device_store_get(store, "data")->backing_boot, "");
        device_store_free(store);
}

/* Also where a newer ublkd has written them: they say nothing of the single store. */
static void test_unreadable_ones_of_an_earlier_disk_are_dropped(const char *directory)
{
        struct device_store *store = open_store(directory);

        put(store);
        device_store_free(store);
        execute(directory, "UPDATE device SET stores = '{\"newer\":1}', spec = "
                           "'{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"path\":\"/a\"}}', "
                           "backing_lasting = 'file:c', backing_boot = 'x'");
        store = open_store(directory);
        CHECK(!device_store_get(store, "data")->quarantine);
        CHECK(!device_store_get(store, "data")->stores);
        CHECK_STR(device_store_get(store, "data")->backing.lasting, "file:c");
        CHECK_INT(put_device(store, "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"path\":\"/a\"},"
                                    "\"readOnly\":true}"),
                0);
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

static char *column_after_restart(const char *directory)
{
        struct device_store *store = open_store(directory);
        char *text = NULL;

        CHECK(device_store_get(store, "data")->quarantine != NULL);
        CHECK_INT(record_stores_print(device_store_get(store, "data")->stores, &text), 0);
        device_store_free(store);
        return text;
}

/* With the same spec its present stores would be taken for those of the disk. A newer ublkd may read the text. */
static void test_what_cannot_be_read_stays(const char *directory)
{
        static const char newer[] = "[{\"path\":\"/a\",\"basis\":99}]";
        struct device_store *store = open_store(directory);
        _cleanup_free_ char *text = NULL, *later = NULL;
        char statement[128];

        put(store);
        device_store_free(store);
        snprintf(statement, sizeof(statement), "UPDATE device SET stores = '%s'", newer);
        execute(directory, statement);
        store = open_store(directory);
        CHECK_INT(try_put(store, "/a", "/b"), -EUCLEAN);
        CHECK_INT(try_put(store, "/c", "/d"), -EUCLEAN);
        CHECK_INT(device_store_request_recover(store, "data"), 0); /* saves the record */
        device_store_free(store);
        text = column_after_restart(directory);
        CHECK_STR(text, newer);
        store = open_store(directory);
        CHECK_INT(device_store_request_delete(store, "data", false), 0);
        device_store_free(store);
        later = column_after_restart(directory);
        CHECK_STR(later, newer);
}

/* The names were exchanged by a reboot, and the client exchanges them in the spec: each place is still for its store. */
static void test_paths_are_exchanged(const char *directory)
{
        struct device_store *store = open_store(directory);

        put(store);
        settle_without_disk(store);
        CHECK_INT(try_put(store, "/b", "/a"), 0);
        check_identity(store, 0);
        check_identity(store, 1);
        device_store_free(store);
        store = open_store(directory);
        check_identity(store, 0);
        check_identity(store, 1);
        device_store_free(store);
}

static void test_a_new_path_drops_the_identity_of_its_store(const char *directory)
{
        struct device_store *store = open_store(directory);

        put(store);
        settle_without_disk(store);
        CHECK_INT(try_put(store, "/a", "/c"), 0);
        check_identity(store, 0);
        CHECK(backing_identity_is_empty(device_record_backing(device_store_get(store, "data"), 1, NULL)));
        CHECK_INT(try_put(store, "/c", "/d"), 0); /* what was at another place is not consented to */
        check_identity(store, 0);
        device_store_free(store);
}

/* Which store each place has after a change of the spec: its letter; '-': none. */
static void check_carried(const char *before, const char *after, const char *expected)
{
        _cleanup_record_stores_ struct record_stores *stores = NULL, *carried = NULL;
        struct device_spec *old = spec_over(before), *new = spec_over(after);
        char found[TARGET_STORES_MAX + 1] = "";

        for (unsigned i = 0; before[i]; i++) {
                struct backing_identity identity = {
                        .basis = BACKING_FILE_HANDLE, .boot = "x", .lasting = "?"};
                char path[] = {'/', before[i], '\0'};
                struct record_stores *more;

                identity.lasting[0] = before[i];
                CHECK_INT(record_stores_with(stores, i, path, &identity, BOOT, &more), 0);
                record_stores_free(stores);
                stores = more;
        }
        CHECK_INT(record_stores_carry(stores, old, new, &carried), 0);
        for (unsigned i = 0; after[i]; i++) {
                const struct record_store *store =
                        record_stores_at(carried, i, device_spec_store_path(new, i));

                found[i] = store ? store->identity.lasting[0] : '-';
        }
        CHECK_STR(found, expected);
        device_spec_free(old);
        device_spec_free(new);
}

/* Of as many places as before each keeps its store, under whatever names; else each name keeps its store. */
static void test_what_is_carried_over(void)
{
        static const char *const cases[][3] = {
                {"ab",  "ab",  "ab" },
                {"ab",  "ba",  "ab" },
                {"abc", "cab", "abc"},
                {"ab",  "an",  "a-" },
                {"ab",  "nab", "-ab"},
                {"ab",  "anb", "a-b"},
                {"abc", "bc",  "bc" },
                {"abc", "ac",  "ac" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check_carried(cases[i][0], cases[i][1], cases[i][2]);
}

static void test_as_text(void)
{
        _cleanup_record_stores_ struct record_stores *stores = NULL, *more = NULL, *read = NULL;
        _cleanup_free_ char *text = NULL;

        CHECK_INT(record_stores_with(NULL, 0, "/a", &identities[0], BOOT, &stores), 0);
        CHECK_INT(record_stores_with(stores, 1, "/b", &identities[1], "", &more), 0);
        CHECK_INT(record_stores_print(more, &text), 0);
        CHECK_INT(record_stores_parse(text, &read), 0);
        CHECK(record_stores_equal(more, read));
        CHECK(!record_stores_equal(stores, read));
        CHECK(!record_stores_find(read, "/c"));
        CHECK(record_stores_at(read, 1, "/b") && !record_stores_at(read, 0, "/b"));
        CHECK(record_stores_elsewhere(read, 0, "/a", &identities[1]));
        CHECK(!record_stores_elsewhere(read, 1, "/b", &identities[1]));
        CHECK(!record_stores_elsewhere(read, 0, "/b", &identities[1])); /* another part of that store */
}

int main(void)
{
        in_a_new_directory(test_they_stay);
        in_a_new_directory(test_an_older_ublkd_leaves_them);
        in_a_new_directory(test_those_of_an_earlier_disk_are_dropped);
        in_a_new_directory(test_unreadable_ones_of_an_earlier_disk_are_dropped);
        in_a_new_directory(test_what_cannot_be_read_is_quarantined);
        in_a_new_directory(test_what_cannot_be_read_stays);
        in_a_new_directory(test_paths_are_exchanged);
        in_a_new_directory(test_a_new_path_drops_the_identity_of_its_store);
        test_what_is_carried_over();
        test_as_text();
        return check_report();
}
