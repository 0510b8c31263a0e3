/* SPDX-License-Identifier: MIT */
/* Tenants: who owns a device stays with it and with its events, over restarts of ublkd and beside an older one. */
#include "tests/unit/ublkd/store/store_directory.h"

#include "tests/unit/check.h"
#include "tests/unit/put_device.h"
#include "ublkd/store/put_check.h"

#include <stdlib.h>
#include <string.h>

#define TENANT "uid:1000"

/* Put a null disk as `tenant` (NULL: the administrators). */
static void put_of(struct device_store *store, const char *name, const char *tenant, const char *size)
{
        _cleanup_problems_ struct problem_list problems = {};
        const struct put_condition condition = {.mode = PUT_CREATE_OR_REPLACE, .tenant = tenant};
        const struct device_record *record;
        struct device_spec *spec = NULL;
        enum put_outcome outcome;
        char text[128];
        cJSON *document;

        snprintf(text, sizeof(text), "{\"target\":{\"type\":\"null\"},\"size\":\"%s\"}", size);
        document = cJSON_Parse(text);
        CHECK_INT(device_spec_parse(document, name, &spec, &problems), 0);
        cJSON_Delete(document);
        if (!CHECK_INT(device_store_put(store, spec, &condition, &record, &outcome, &problems), 0))
                device_spec_free(spec);
}

static const char *tenant_of(const struct device_store *store, const char *name)
{
        return device_store_get(store, name)->tenant;
}

static void test_the_tenant_stays(const char *directory)
{
        struct device_store *store = open_store(directory);

        put_of(store, "theirs", TENANT, "1GiB");
        put_of(store, "ours", NULL, "1GiB");
        put_of(store, "theirs", NULL, "2GiB"); /* an administrator changes it, and it stays the tenant's */
        CHECK_STR(tenant_of(store, "theirs"), TENANT);
        CHECK_STR(tenant_of(store, "ours"), "");
        device_store_free(store);
        store = open_store(directory);
        CHECK_STR(tenant_of(store, "theirs"), TENANT);
        CHECK_STR(tenant_of(store, "ours"), "");
        device_store_free(store);
}

static void test_the_devices_of_a_tenant_in_their_order(const char *directory)
{
        static const char *const wanted[] = {"beech", "maple", "oak"};
        struct device_store *store = open_store(directory);
        const struct device_record *record;
        size_t count = 0;

        put_of(store, "oak", TENANT, "1GiB");
        put_of(store, "ash", NULL, "1GiB");
        put_of(store, "maple", TENANT, "1GiB");
        put_of(store, "lime", "uid:1001", "1GiB");
        put_of(store, "beech", TENANT, "1GiB");
        put_of(store, "elm", "uid:999", "1GiB");
        put_of(store, "oak", NULL, "2GiB"); /* its record is another one, and has the same place */
        for (record = device_store_next_of(store, TENANT, NULL); record && count < ARRAY_SIZE(wanted);
                record = device_store_after_of(record))
                CHECK_STR(record->name, wanted[count++]);
        CHECK(!record);
        CHECK_INT(count, ARRAY_SIZE(wanted));
        CHECK_STR(
                device_store_next_of(store, TENANT, "elm")->name, "maple"); /* of a name that is another's */
        CHECK(!device_store_next_of(store, TENANT, "oak"));
        CHECK(!device_store_next_of(store, "uid:1002", NULL));
        CHECK(!device_store_next_of(store, "", NULL));
        device_store_free(store);
}

/* Each event belongs to whom the device belonged, also after the device has gone. */
static void check_events(const struct device_store *store)
{
        const struct event_log *events = device_store_events(store);

        CHECK_INT(event_log_count(events) >= 2, true);
        for (size_t i = 0; i < event_log_count(events); i++) {
                const struct device_event *event = event_log_at(events, i);

                CHECK_STR(event->tenant, strcmp(event->device, "theirs") == 0 ? TENANT : "");
        }
}

static void test_events_have_the_tenant(const char *directory)
{
        struct device_store *store = open_store(directory);

        put_of(store, "theirs", TENANT, "1GiB");
        put_of(store, "ours", NULL, "1GiB");
        CHECK_INT(device_store_note(store, "theirs", EVENT_WARNING, REASON_SPEC_CHANGED, "x"), 0);
        CHECK_INT(device_store_remove(store, "theirs"), 0);
        check_events(store);
        device_store_free(store);
        store = open_store(directory);
        check_events(store);
        device_store_free(store);
}

/* It does not know the columns, and writes records without them. */
static void test_an_older_ublkd_keeps_it(const char *directory)
{
        struct device_store *store = open_store(directory);

        put_of(store, "theirs", TENANT, "1GiB");
        device_store_free(store);
        execute(directory, "INSERT INTO device (name, uid, generation, revision, epoch, number, deleting, "
                           "recover_requested,"
                           " held_boot, created_at, spec) SELECT name, uid, generation + 1, revision, epoch, "
                           "number, deleting,"
                           " recover_requested, held_boot, created_at, spec FROM device WHERE true"
                           " ON CONFLICT (name) DO UPDATE SET generation = excluded.generation");
        store = open_store(directory);
        CHECK_INT((int)device_store_get(store, "theirs")->generation, 2);
        CHECK_STR(tenant_of(store, "theirs"), TENANT);
        device_store_free(store);
}

static void test_a_database_without_tenants(const char *directory)
{
        struct device_store *store = open_store(directory);

        put_of(store, "plain", NULL, "1GiB");
        device_store_free(store);
        execute(directory, "ALTER TABLE device DROP COLUMN tenant; ALTER TABLE event DROP COLUMN tenant;"
                           "ALTER TABLE event DROP COLUMN account");
        store = open_store(directory);
        CHECK_STR(tenant_of(store, "plain"), "");
        put_of(store, "theirs", TENANT, "1GiB");
        device_store_free(store);
        store = open_store(directory);
        CHECK_STR(tenant_of(store, "theirs"), TENANT);
        check_events(store);
        device_store_free(store);
}

/* In the database as well, and without a gap that a client could miss. */
static void test_a_tenant_has_so_many_events(const char *directory)
{
        struct device_store *store = open_store(directory);
        const struct event_log *events = device_store_events(store);
        uint64_t floor;
        size_t count;

        put_of(store, "ours", NULL, "1GiB");
        for (unsigned i = 0; i < 2 * EVENTS_OF_ACCOUNT_MAX; i++)
                put_of(store, "theirs", TENANT, i % 2 ? "2GiB" : "1GiB");
        CHECK_INT(device_store_save_events(store), 0);
        floor = event_log_compacted_of(events, TENANT);
        count = event_log_count(events);
        CHECK(floor > 0 && count <= EVENTS_OF_ACCOUNT_MAX + 2);
        device_store_free(store);

        store = open_store(directory);
        events = device_store_events(store);
        CHECK_INT(event_log_count(events), count);
        CHECK_INT(event_log_compacted_of(events, TENANT), floor);
        CHECK_INT(event_log_compacted(events), 0);
        CHECK_STR(event_log_at(events, 0)->device, "ours");
        device_store_free(store);
}

static uint32_t first_of_account(void *userdata _unused_, uid_t uid)
{
        return uid < 100000 ? uid : 100000;
}

/* The same of all users that count together, each of which has only some events. */
static void test_an_account_has_so_many_events(const char *directory)
{
        struct device_store *store = open_store(directory);
        const struct event_log *events = device_store_events(store);
        char name[16], tenant[TENANT_SIZE];
        uint64_t floor;
        size_t count;

        device_store_set_accounts(store, first_of_account, NULL);
        put_of(store, "ours", NULL, "1GiB");
        for (unsigned i = 0; i < EVENTS_OF_ACCOUNT_MAX + 100; i++) { /* each is written to the disk */
                snprintf(name, sizeof(name), "data-%u", i % 100);
                snprintf(tenant, sizeof(tenant), "uid:%u", 100000 + i % 100);
                put_of(store, name, tenant, i / 100 % 2 ? "2GiB" : "1GiB");
        }
        CHECK_INT(device_store_save_events(store), 0);
        floor = event_log_compacted_of(events, "uid:100001");
        count = event_log_count(events);
        CHECK(floor > 0 && count <= EVENTS_OF_ACCOUNT_MAX + 2);
        device_store_free(store);

        store = open_store(directory);
        device_store_set_accounts(store, first_of_account, NULL);
        events = device_store_events(store);
        CHECK_INT(event_log_count(events), count);
        CHECK_INT(event_log_compacted_of(events, "uid:100099"), floor);
        CHECK_INT(event_log_compacted_of(events, TENANT), floor); /* it may have been of that account */
        CHECK_INT(event_log_compacted(events), 0);
        device_store_free(store);
}

static void check_usage(
        const struct device_store *store, uid_t first, uid_t last, uint64_t devices, uint64_t gib)
{
        struct store_usage usage = device_store_usage(store, first, last, "none");

        CHECK_INT(usage.devices, devices);
        CHECK_INT(usage.bytes, gib << 30);
        CHECK_INT(usage.unreadable, 0);
}

static void test_what_users_have(const char *directory)
{
        struct device_store *store = open_store(directory);

        put_of(store, "a", "uid:1000", "1GiB");
        put_of(store, "b", "uid:1000", "2GiB");
        put_of(store, "c", "uid:1001", "4GiB");
        put_of(store, "d", "uid:4294967294", "8GiB");
        put_of(store, "ours", NULL, "16GiB");
        check_usage(store, 1000, 1000, 2, 3);
        check_usage(store, 0, 999, 0, 0);
        check_usage(store, 1000, 1001, 3, 7);
        check_usage(store, 0, UINT32_MAX, 4, 15);
        CHECK_INT(device_store_usage(store, 1000, 1000, "b").bytes, 1 << 30);
        CHECK_INT(device_store_usage(store, 1000, 1000, "b").devices, 1);
        CHECK_INT(device_store_usage(store, 1001, 1001, "b").devices, 1); /* it is another's */
        CHECK_INT(device_store_usage(store, 0, UINT32_MAX, "ours").devices, 4);
        put_of(store, "b", "uid:1000", "32GiB"); /* it grows */
        check_usage(store, 1000, 1000, 2, 33);
        CHECK_INT(device_store_request_delete(store, "b", false), 0);
        check_usage(store, 1000, 1000, 2, 33); /* it counts until it is gone */
        CHECK_INT(device_store_remove(store, "b"), 0);
        check_usage(store, 1000, 1000, 1, 1);
        device_store_free(store);
        store = open_store(directory);
        check_usage(store, 1000, 1001, 2, 5);
        device_store_free(store);
}

static void test_keys(void)
{
        char key[TENANT_SIZE];
        uid_t uid = 0;

        tenant_of_user(4294967294, key);
        CHECK_STR(key, "uid:4294967294");
        CHECK(tenant_user(key, &uid) && uid == 4294967294);
        CHECK(tenant_is(key, "uid:4294967294") && !tenant_is(key, "uid:429496729"));
        CHECK(!tenant_is("", "")); /* no tenant is an administrator */
        CHECK(!tenant_user("", &uid) && !tenant_user("uid:", &uid) && !tenant_user("uid:1x", &uid));
}

/* The message of an old record may quote who uses the disk. */
static void test_an_old_record_names_nothing_of_others(void)
{
        static char name[] = "theirs", message[] = "It is in use by process 4211.";
        const struct device_record record = {
                .name = name,
                .age = RECORD_OUTDATED,
                .status = {.reason = REASON_RECORD_OUTDATED, .quoted = REASON_IN_USE, .message = message}
        };

        for (int i = 0; i < 2; i++) {
                _cleanup_problems_ struct problem_list problems = {};
                const struct put_condition condition = {.tenant = i == 0 ? NULL : TENANT};
                cJSON *document = cJSON_Parse("{\"target\":{\"type\":\"null\"},\"size\":\"1GiB\"}");
                struct device_spec *spec = NULL;

                CHECK_INT(device_spec_parse(document, "theirs", &spec, &problems), 0);
                CHECK_INT(put_check(spec, &record, NULL, &condition, &problems), -EUCLEAN);
                CHECK_STR(problems.items[0].reason, "RecordOutdated");
                CHECK_INT(strstr(problems.items[0].detail, "4211") != NULL, i == 0);
                device_spec_free(spec);
                cJSON_Delete(document);
        }
}

static void count_intents(void *userdata, const struct store_event *happened)
{
        *(int *)userdata += happened->kind == STORE_INTENT;
}

/* What the kernel has mounted, or is about to, its tenant must not write to past the file system. */
static void test_a_mounted_volume_gets_no_node(const char *directory)
{
        static const char volume[] = "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"pool\":\"fast\"},"
                                     "\"size\":\"1GiB\",\"privateNode\":%s}";
        struct device_store *store = open_store(directory);
        char with_node[160], without_node[160];
        int intents = 0;

        snprintf(with_node, sizeof(with_node), volume, "true");
        snprintf(without_node, sizeof(without_node), volume, "false");
        CHECK_INT(put_device_of(store, without_node, TENANT), 0);
        CHECK_INT(device_store_set_mount(store, "data", "/mounts/data"), 0);
        CHECK_INT(put_device_of(store, with_node, TENANT), -ETXTBSY);
        CHECK_INT(put_device_of(store, with_node, NULL), -ETXTBSY); /* an administrator */
        CHECK_INT(put_device_of(store, without_node, TENANT), 0);
        CHECK_INT(device_store_set_mount(store, "data", ""), 0);
        device_store_set_mount_change(store, "data", MOUNT_COMES);
        CHECK_INT(put_device_of(store, with_node, TENANT), -ETXTBSY);
        device_store_set_mount_change(store, "data", MOUNT_GOES);
        CHECK_INT(put_device_of(store, with_node, TENANT), -ETXTBSY);
        CHECK_INT(device_store_subscribe(store, count_intents, &intents), 0);
        device_store_set_mount_change(store, "data", MOUNT_STAYS);
        device_store_set_mount_change(store, "data", MOUNT_STAYS);
        CHECK_INT(intents, 1); /* of the private node */
        device_store_unsubscribe(store, count_intents, &intents);
        CHECK_INT(device_store_hold_mount(store, "data", "a"), 1);
        CHECK_INT(put_device_of(store, with_node, TENANT), -ETXTBSY);
        CHECK_INT(device_store_release_mount(store, "data", "a"), 0);
        CHECK_INT(put_device_of(store, with_node, TENANT), 0);
        device_store_free(store);
}

int main(void)
{
        in_a_new_directory(test_the_tenant_stays);
        in_a_new_directory(test_the_devices_of_a_tenant_in_their_order);
        in_a_new_directory(test_events_have_the_tenant);
        in_a_new_directory(test_an_older_ublkd_keeps_it);
        in_a_new_directory(test_a_database_without_tenants);
        in_a_new_directory(test_a_tenant_has_so_many_events);
        in_a_new_directory(test_an_account_has_so_many_events);
        in_a_new_directory(test_a_mounted_volume_gets_no_node);
        in_a_new_directory(test_what_users_have);
        test_keys();
        test_an_old_record_names_nothing_of_others();
        return check_report();
}
