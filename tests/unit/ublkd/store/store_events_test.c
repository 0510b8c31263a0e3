/* SPDX-License-Identifier: MIT */
/* The events of a store in a real database: which changes make one, what survives, what costs a write. */
#include "ublkd/store/device_store.h"

#include "tests/unit/check.h"
#include "tests/unit/put_device.h"
#include "tests/unit/remove_tree.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

struct place {
        char directory[96], database[112];
};

enum { DEVICES = 16 };

static struct device_store *open_store(const struct place *place)
{
        struct problem_list problems = {};
        const struct device_backend *backend;
        struct device_store *store = NULL;
        void *context;

        if (CHECK_INT(store_sqlite_open(place->directory, &backend, &context, &problems), 0))
                CHECK_INT(device_store_new(backend, context, &store), 0);
        for (size_t i = 0; i < problems.count; i++)
                fprintf(stderr, "%s\n", problems.items[i].detail);
        problem_list_clear(&problems);
        if (!store)
                abort();
        return store;
}

static void set_status(
        struct device_store *store, enum device_phase phase, enum condition_reason reason, int nth)
{
        struct device_status status = {.phase = phase, .number = -1};

        CHECK_INT(device_status_explain(&status, reason, "Try %d.", nth), 0);
        CHECK_INT(device_store_set_status(store, "data", &status), 0);
        device_status_clear(&status);
}

static const struct device_event *last_event(const struct device_store *store)
{
        const struct event_log *log = device_store_events(store);

        return event_log_at(log, event_log_count(log) - 1);
}

static void check_last(const struct device_store *store, enum condition_reason reason, enum event_type type)
{
        const struct device_event *event = last_event(store);

        CHECK_INT(event->reason, reason);
        CHECK_INT(event->type, type);
        CHECK_STR(event->device, "data");
        CHECK_INT(event->revision, device_store_revision(store));
        CHECK_INT(event->message[strlen(event->message) - 1], '.');
}

#define SPEC(more) "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"" more "}"

static void test_every_change_is_reported(const struct place *place)
{
        struct device_store *store = open_store(place);
        uint64_t revision;

        CHECK_INT(put_device(store, SPEC(",\"labels\":{\"app\":\"db\"}")), 0);
        check_last(store, REASON_CREATED, EVENT_NORMAL);
        CHECK_STR(last_event(store)->labels, "{\"app\":\"db\"}");
        set_status(store, PHASE_STARTING, REASON_STARTING, 1);
        check_last(store, REASON_STARTING, EVENT_NORMAL);
        revision = last_event(store)->revision;
        set_status(
                store, PHASE_PENDING, REASON_HOST_NOT_READY, 1); /* of the host: not once for each device */
        CHECK_INT(last_event(store)->revision, revision);
        set_status(store, PHASE_STARTING, REASON_STARTING, 1);
        revision = last_event(store)->revision;
        set_status(store, PHASE_STARTING, REASON_STARTING, 2); /* only the sentence */
        CHECK_INT(last_event(store)->revision, revision);
        set_status(store, PHASE_LIVE, REASON_CANNOT_GROW, 1);
        check_last(store, REASON_CANNOT_GROW, EVENT_WARNING);
        set_status(store, PHASE_RECOVERING, REASON_RESTARTING, 1); /* was asked for */
        check_last(store, REASON_RESTARTING, EVENT_NORMAL);
        set_status(store, PHASE_BACKOFF, REASON_BACKING_FILE_MISSING, 1);
        check_last(store, REASON_BACKING_FILE_MISSING, EVENT_WARNING);
        set_status(store, PHASE_BACKOFF, REASON_BACKING_FILE_NOT_PERMITTED, 1);
        check_last(store, REASON_BACKING_FILE_NOT_PERMITTED, EVENT_WARNING);
        CHECK_INT(
                device_store_note(store, "data", EVENT_WARNING, REASON_WORKER_DIED, "It died of %d.", 9), 0);
        check_last(store, REASON_WORKER_DIED, EVENT_WARNING);
        CHECK_INT(device_store_note(store, "other", EVENT_WARNING, REASON_WORKER_DIED, "It died."), -ENOENT);
        CHECK_INT(device_store_request_recover(store, "data"), 0);
        check_last(store, REASON_RECOVER_REQUESTED, EVENT_NORMAL);
        CHECK_INT(put_device(store, SPEC(",\"readOnly\":true")), 0);
        check_last(store, REASON_SPEC_CHANGED, EVENT_NORMAL);
        CHECK(!strstr(last_event(store)->message, "removes")); /* there is no old disk */
        CHECK(!last_event(store)->labels);
        CHECK_INT(device_store_request_delete(store, "data", false), 0);
        check_last(store, REASON_DELETE_REQUESTED, EVENT_NORMAL);
        CHECK_INT(device_store_remove(store, "data"), 0);
        check_last(store, REASON_REMOVED, EVENT_NORMAL);
        device_store_free(store);
}

/* The phase alone, Stopping, is nothing to warn of: here it is I/O that fails. */
static void test_giving_up_is_a_warning(const struct place *place)
{
        struct device_store *store = open_store(place);

        CHECK_INT(put_device(store, SPEC("")), 0);
        set_status(store, PHASE_STOPPING, REASON_DISABLING, 1);
        check_last(store, REASON_DISABLING, EVENT_NORMAL);
        set_status(store, PHASE_STOPPING, REASON_GAVE_UP, 1);
        check_last(store, REASON_GAVE_UP, EVENT_WARNING);
        device_store_free(store);
}

/* What ublkd itself begins repeats the event of the last time; each request of a client is one of its own. */
static void test_only_an_upgrade_repeats_that_before(const struct place *place)
{
        struct device_store *store = open_store(place);

        CHECK_INT(put_device(store, SPEC("")), 0);
        for (unsigned n = 1; n <= 2; n++) {
                CHECK_INT(device_store_request_upgrade(store, "data"), 0);
                check_last(store, REASON_WORKER_UPGRADE, EVENT_NORMAL);
                CHECK_INT(last_event(store)->count, n);
                CHECK_INT(device_store_request_restart(store, "data", false), 0);
                check_last(store, REASON_RESTART_REQUESTED, EVENT_NORMAL);
                CHECK_INT(last_event(store)->count, 1);
        }
        device_store_free(store);
}

/* The files as a crash would leave them: what a store finds that opens them. */
static struct device_store *open_crashed(const struct place *place)
{
        struct place crashed = {};
        char command[512];

        snprintf(crashed.directory, sizeof(crashed.directory), "%.80s/crashed", place->directory);
        snprintf(command, sizeof(command), "mkdir -p %s && cp %s/ublkd.db* %s", crashed.directory,
                place->directory, crashed.directory);
        CHECK_INT(system(command), 0);
        return open_store(&crashed);
}

/* Events of disks without a device: whatever their number, no revision is used twice. */
static void test_no_revision_comes_twice_after_a_crash(const struct place *place)
{
        struct device_store *store = open_store(place), *after;
        uint64_t newest;

        for (int i = 0; i < 70000; i++) /* more than one block of revisions */
                device_store_note_disk(
                        store, i % 256, EVENT_WARNING, REASON_DISK_OF_NO_DEVICE, "It was found.");
        newest = last_event(store)->revision;
        CHECK_INT(newest, 70000);
        after = open_crashed(place);
        device_store_note_disk(after, 1, EVENT_WARNING, REASON_DISK_OF_NO_DEVICE, "It was found.");
        CHECK(last_event(after)->revision > newest);
        device_store_free(after);
        device_store_free(store);
}

/* What was asked for is there after a crash (no device_store_save_events()), with its revisions. */
static void test_asked_for_survives_a_crash(const struct place *place)
{
        struct device_store *store = open_store(place), *crashed;
        uint64_t before;

        CHECK_INT(put_device(store, SPEC()), 0);
        CHECK_INT(device_store_request_delete(store, "data", false), 0);
        before = device_store_revision(store);
        crashed = open_crashed(place);
        device_store_free(store);
        store = crashed;
        CHECK_INT(event_log_count(device_store_events(store)), 2);
        CHECK_INT(last_event(store)->reason, REASON_DELETE_REQUESTED);
        CHECK_INT(last_event(store)->revision, before);
        CHECK(device_store_revision(store) >= before);
        device_store_free(store);
}

static void test_flapping_costs_no_writes(const struct place *place)
{
        struct device_store *store = open_store(place);
        const struct device_event *event;
        struct stat before, after;
        char log[128];

        CHECK_INT(put_device(store, SPEC()), 0);
        snprintf(log, sizeof(log), "%s-wal", place->database);
        CHECK_INT(stat(log, &before), 0);
        for (int i = 0; i < 5000; i++) {
                set_status(store, PHASE_STARTING, REASON_STARTING, i);
                set_status(store, PHASE_BACKOFF, REASON_BACKING_FILE_MISSING, i);
        }
        CHECK_INT(stat(log, &after), 0);
        CHECK_INT(after.st_size, before.st_size);
        CHECK_INT(event_log_count(device_store_events(store)), 3);
        CHECK_INT(device_store_save_events(store), 0);
        device_store_free(store);

        store = open_store(place);
        CHECK_INT(event_log_count(device_store_events(store)), 3);
        event = last_event(store);
        CHECK_INT(event->reason, REASON_BACKING_FILE_MISSING);
        CHECK_STR(event->message, "Try 4999.");
        CHECK_INT(event->count, 5000);
        CHECK_INT(event->revision - event->first_revision, 2 * 4999);
        device_store_free(store);
}

/* Create as many devices as have all events together, and none too many. */
static void put_devices(struct device_store *store)
{
        for (int i = 0; i < DEVICES; i++) {
                char text[128];

                snprintf(text, sizeof(text),
                        "{\"name\":\"data%d\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}", i);
                CHECK_INT(put_device(store, text), 0);
        }
}

static void note_another(struct device_store *store, int number)
{
        char name[16], reason[16];

        snprintf(name, sizeof(name), "data%d", number % DEVICES);
        snprintf(reason, sizeof(reason), "Reason%d", number);
        CHECK_INT(device_store_note(store, name, EVENT_NORMAL, reason_from_string(reason), "It."), 0);
}

/* Compaction reaches the database, and is remembered. */
static void test_compaction_is_remembered(const struct place *place)
{
        struct device_store *store = open_store(place);
        uint64_t compacted;

        put_devices(store);
        for (int i = 0; i < EVENTS_MAX + 100; i++) {
                note_another(store, i);
                if (i == EVENTS_MAX / 2)
                        CHECK_INT(device_store_save_events(store), 0);
        }
        compacted = event_log_compacted(device_store_events(store));
        CHECK(compacted > 0);
        device_store_free(store);
        store = open_store(place);
        CHECK_INT(event_log_count(device_store_events(store)), EVENTS_MAX);
        CHECK_INT(event_log_compacted(device_store_events(store)), compacted);
        CHECK_INT(event_log_at(device_store_events(store), 0)->revision, compacted + 1);
        device_store_free(store);
}

/* Those of a device alone, too. */
static void test_what_a_device_has_lost_is_not_in_the_database(const struct place *place)
{
        struct device_store *store = open_store(place);
        char reason[16];
        size_t count;

        put_devices(store);
        for (int i = 0; i < EVENTS_OF_ACCOUNT_MAX + 100; i++) {
                snprintf(reason, sizeof(reason), "Reason%d", i);
                CHECK_INT(device_store_note(store, "data3", EVENT_NORMAL, reason_from_string(reason), "It."),
                        0);
                if (i == EVENTS_OF_ACCOUNT_MAX / 2)
                        CHECK_INT(device_store_save_events(store), 0);
        }
        count = event_log_count(device_store_events(store));
        CHECK(count < EVENTS_OF_ACCOUNT_MAX);
        CHECK_INT(device_store_save_events(store), 0);
        device_store_free(store);
        store = open_store(place);
        CHECK_INT(event_log_count(device_store_events(store)), count);
        CHECK_INT(event_log_compacted(device_store_events(store)), 0);
        CHECK_INT(event_log_at(device_store_events(store), 0)->reason, REASON_CREATED);
        CHECK_STR(event_log_at(device_store_events(store), 0)->device, "data0");
        device_store_free(store);
}

static int stored_events(const struct place *place)
{
        sqlite3_stmt *count = NULL;
        sqlite3 *db = NULL;
        int rows = -1;

        CHECK_INT(sqlite3_open(place->database, &db), SQLITE_OK);
        CHECK_INT(sqlite3_prepare_v2(db, "SELECT count(*) FROM event", -1, &count, NULL), SQLITE_OK);
        if (CHECK_INT(sqlite3_step(count), SQLITE_ROW))
                rows = sqlite3_column_int(count, 0);
        CHECK_INT(sqlite3_finalize(count), SQLITE_OK);
        CHECK_INT(sqlite3_close(db), SQLITE_OK);
        return rows;
}

/* Also where all new events are written with their records, so that none ever waits to be written. */
static void test_the_database_is_bounded(const struct place *place)
{
        struct device_store *store = open_store(place);

        CHECK_INT(put_device(store, SPEC()), 0);
        put_devices(store);
        for (int i = 0; i < EVENTS_MAX; i++)
                note_another(store, i);
        CHECK_INT(device_store_save_events(store), 0);
        CHECK(!event_log_has_dropped(device_store_events(store)));
        CHECK_INT(device_store_request_delete(store, "data", false), 0);
        CHECK_INT(device_store_remove(store, "data"), 0);
        CHECK_INT(put_device(store, SPEC()), 0);
        CHECK(event_log_has_dropped(device_store_events(store)));
        CHECK_INT(device_store_save_events(store), 0);
        CHECK(!event_log_has_dropped(device_store_events(store)));
        device_store_free(store);
        CHECK_INT(stored_events(place), EVENTS_MAX);
}

/* Revisions were given out that could not be written down, but events with them could later: as after a full
 * disk and a crash. None is given out again. */
static void test_revisions_behind_the_events(const struct place *place)
{
        struct device_store *store = open_store(place);
        uint64_t newest;
        sqlite3 *db = NULL;

        CHECK_INT(put_device(store, SPEC()), 0);
        set_status(store, PHASE_BACKOFF, REASON_BACKING_FILE_MISSING, 1);
        newest = last_event(store)->revision;
        device_store_free(store);
        CHECK_INT(sqlite3_open(place->database, &db), SQLITE_OK);
        CHECK_INT(sqlite3_exec(db, "UPDATE store SET revision = 0", NULL, NULL, NULL), SQLITE_OK);
        CHECK_INT(sqlite3_close(db), SQLITE_OK);
        store = open_store(place);
        CHECK(device_store_revision(store) >= newest);
        CHECK_INT(device_store_request_delete(store, "data", false), 0);
        check_last(store, REASON_DELETE_REQUESTED, EVENT_NORMAL);
        CHECK(last_event(store)->revision > newest);
        CHECK_INT(event_log_count(device_store_events(store)), 3);
        device_store_free(store);
}

/* A database of the first version, with a device whose spec cannot be used. */
static void test_old_database_is_taken_over(const struct place *place)
{
        sqlite3 *db = NULL;
        struct device_store *store;

        CHECK_INT(sqlite3_open(place->database, &db), SQLITE_OK);
        CHECK_INT(
                sqlite3_exec(db,
                        "CREATE TABLE store (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT "
                        "NULL) STRICT; INSERT INTO store VALUES (1, 65536);"
                        "CREATE TABLE device (name TEXT PRIMARY KEY NOT NULL, uid TEXT NOT NULL UNIQUE,"
                        " generation INTEGER NOT NULL, revision INTEGER NOT NULL, epoch INTEGER NOT NULL,"
                        " number INTEGER UNIQUE, deleting INTEGER NOT NULL, recover_requested INTEGER NOT "
                        "NULL, held_boot TEXT NOT NULL, created_at INTEGER NOT NULL, spec TEXT NOT NULL) "
                        "STRICT, WITHOUT ROWID;"
                        "INSERT INTO device VALUES ('data', '11111111-2222-3333-4444-555555555555', 1, 7, 1, "
                        "NULL, 0, 0, '', 1, '{}');"
                        "PRAGMA application_id = 1969384555; PRAGMA user_version = 1",
                        NULL, NULL, NULL),
                SQLITE_OK);
        CHECK_INT(sqlite3_close(db), SQLITE_OK);
        store = open_store(place);
        CHECK(device_store_get(store, "data"));
        check_last(store, REASON_QUARANTINED, EVENT_WARNING);
        CHECK(last_event(store)->revision > 65536);
        device_store_free(store);
}

int main(void)
{
        static void (*const tests[])(const struct place *) = {test_every_change_is_reported,
                test_giving_up_is_a_warning, test_asked_for_survives_a_crash,
                test_no_revision_comes_twice_after_a_crash, test_only_an_upgrade_repeats_that_before,
                test_flapping_costs_no_writes, test_compaction_is_remembered,
                test_what_a_device_has_lost_is_not_in_the_database, test_the_database_is_bounded,
                test_revisions_behind_the_events, test_old_database_is_taken_over};

        for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
                struct place place = {.directory = "/tmp/store_events_test.XXXXXX"};

                if (!mkdtemp(place.directory))
                        return 1;
                snprintf(place.database, sizeof(place.database), "%s/ublkd.db", place.directory);
                tests[i](&place);
                CHECK_INT(remove_tree(place.directory), 0);
        }
        return check_report();
}
