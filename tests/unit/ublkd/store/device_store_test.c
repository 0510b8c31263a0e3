/* SPDX-License-Identifier: MIT */
/* device_store: the rules of the records, over a backend that remembers and that can fail. */
#include "ublkd/store/device_store.h"
#include "tests/unit/check.h"
#include "tests/unit/put_device.h"
#include "tests/unit/spec_of.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 3000, DISK_EVENTS_MAX = 20000 };

/* Rows outlive the store that wrote them, as a disk does. */
struct disk {
        struct row {
                struct device_record record; /* name is owned, the pointers are not looked at */
                char *document;
        } rows[ROWS_MAX];
        size_t count;
        uint64_t revision;
        int fail; /* -errno for every write */
        unsigned writes, event_writes;
        struct device_event *events[DISK_EVENTS_MAX];
        size_t event_count;
        uint64_t compacted;
};

static struct row *find_row(struct disk *disk, const char *name)
{
        for (size_t i = 0; i < disk->count; i++)
                if (strcmp(disk->rows[i].record.name, name) == 0)
                        return &disk->rows[i];
        return NULL;
}

static int disk_load(void *context, int (*each)(void *, const struct device_record *, const char *),
        void *userdata, struct store_stamp *ret)
{
        struct disk *disk = context;

        for (size_t i = 0; i < disk->count; i++) {
                int r = each(userdata, &disk->rows[i].record, disk->rows[i].document);

                if (r < 0)
                        return r;
        }
        *ret = (struct store_stamp){.revision = disk->revision};
        return 0;
}

static void keep_event(struct disk *disk, const struct device_event *event)
{
        size_t i = 0;

        if (!event)
                return;
        while (i < disk->event_count && disk->events[i]->first_revision != event->first_revision)
                i++;
        if (i < disk->event_count)
                device_event_free(disk->events[i]);
        else
                disk->event_count++;
        disk->events[i] = device_event_copy(event);
}

static int disk_save_revision(void *context, uint64_t revision)
{
        struct disk *disk = context;

        if (disk->fail)
                return disk->fail;
        disk->writes++;
        disk->revision = revision;
        return 0;
}

static int disk_load_events(void *context, int (*each)(void *, const struct device_event *), void *userdata,
        uint64_t *ret_compacted)
{
        struct disk *disk = context;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < disk->event_count; i++)
                r = each(userdata, disk->events[i]);
        *ret_compacted = disk->compacted;
        return r;
}

static int disk_save_events(void *context, const struct device_event *const *events, size_t count,
        uint64_t compacted, const struct event_floors *floors _unused_)
{
        struct disk *disk = context;

        if (disk->fail)
                return disk->fail;
        for (size_t i = 0; i < count; i++)
                keep_event(disk, events[i]);
        disk->event_writes++;
        disk->compacted = compacted;
        return 0;
}

static int disk_save(void *context, const struct device_record *record, const char *document,
        uint64_t revision, const struct device_event *event)
{
        struct disk *disk = context;
        struct row *row = find_row(disk, record->name);
        char *copy = strdup(document);

        if (disk->fail) {
                free(copy);
                return disk->fail;
        }
        disk->writes++;
        disk->revision = revision;
        keep_event(disk, event);
        if (row) {
                char *name = row->record.name;

                free(row->document);
                *row = (struct row){.record = *record, .document = copy};
                row->record.name = name;
                return 0;
        }
        row = &disk->rows[disk->count++];
        *row = (struct row){.record = *record, .document = copy};
        row->record.name = strdup(record->name);
        return 0;
}

static int disk_erase(void *context, const char *name, uint64_t revision, const struct device_event *event)
{
        struct disk *disk = context;
        struct row *row = find_row(disk, name);

        if (disk->fail)
                return disk->fail;
        if (!row)
                return -ENOENT;
        free(row->record.name);
        free(row->document);
        *row = disk->rows[--disk->count];
        disk->revision = revision;
        keep_event(disk, event);
        return 0;
}

static void disk_close(void *context)
{
        (void)context;
}

static const struct device_backend disk_backend = {
        .name = "disk",
        .load = disk_load,
        .save = disk_save,
        .erase = disk_erase,
        .save_revision = disk_save_revision,
        .load_events = disk_load_events,
        .save_events = disk_save_events,
        .close = disk_close,
};

static void disk_clear(struct disk *disk)
{
        while (disk->count > 0) {
                free(disk->rows[--disk->count].record.name);
                free(disk->rows[disk->count].document);
        }
        while (disk->event_count > 0)
                device_event_free(disk->events[--disk->event_count]);
}

static struct device_store *open_store(struct disk *disk)
{
        struct device_store *store = NULL;

        CHECK_INT(device_store_new(&disk_backend, disk, &store), 0);
        return store;
}

/* Puts `text`; returns what device_store_put() returned. The first problem's sentence is copied to `ret_why`.
 */
static int put_why(struct device_store *store, const char *text, const struct put_condition *condition,
        enum put_outcome *ret_outcome, char *ret_why, size_t size)
{
        struct device_spec *spec = spec_of(text);
        struct problem_list problems = {};
        const struct device_record *record = NULL;
        int r = device_store_put(store, spec, condition, &record, ret_outcome, &problems);

        if (r < 0)
                device_spec_free(spec);
        else
                CHECK(record && record->spec);
        snprintf(ret_why, size, "%s", problems.count ? problems.items[0].detail : "");
        problem_list_clear(&problems);
        return r;
}

#define SPEC(name, more) "{\"name\":\"" name "\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"" more "}"

struct witness {
        unsigned counts[_STORE_EVENT_MAX];
        uint64_t revision;
        char last[64];
};

static void on_event(void *userdata, const struct store_event *event)
{
        struct witness *witness = userdata;

        witness->counts[event->kind]++;
        CHECK(event->revision >= witness->revision);
        witness->revision = event->revision;
        CHECK(strlen(event->uid) == UID_TEXT_SIZE - 1);
        CHECK((event->record == NULL) == (event->kind == STORE_REMOVED));
        snprintf(witness->last, sizeof(witness->last), "%s", event->name);
}

static void test_generations_and_epochs(struct disk *disk)
{
        struct device_store *store = open_store(disk);
        const struct device_record *record;
        char uid[UID_TEXT_SIZE];

        CHECK_INT(put_device(store, SPEC("data", "")), 0);
        record = device_store_get(store, "data");
        if (!CHECK(record))
                return;
        CHECK_INT(record->generation, 1);
        CHECK_INT(record->epoch, 1);
        CHECK_INT(record->number, -1);
        CHECK_INT(record->status.phase, PHASE_PENDING);
        strcpy(uid, record->uid);
        CHECK_INT(put_device(store, SPEC("data", ",\"queueDepth\":128")), 0); /* the default */
        CHECK_INT(record->generation, 1);
        CHECK_INT(put_device(store, SPEC("data", ",\"labels\":{\"a\":\"b\"}")), 0);
        CHECK_INT(record->generation, 2);
        CHECK_INT(record->epoch, 1); /* a label needs no new disk */
        CHECK_INT(put_device(store, SPEC("data", ",\"queueDepth\":64")), 0);
        CHECK_INT(record->generation, 3);
        CHECK_INT(record->epoch, 2);
        CHECK_INT(put_device(store, SPEC("data", ",\"queueDepth\":64,\"id\":9")), 0);
        CHECK_INT(record->epoch, 3);
        CHECK_INT(record->number, 9);
        CHECK_INT(put_device(store, SPEC("data", ",\"queueDepth\":64")), 0);
        CHECK_INT(record->number, 9); /* once given out, it is kept */
        CHECK_INT(put_device(store, SPEC("data", ",\"queueDepth\":64,\"id\":11")), 0);
        CHECK_INT(record->number, 9); /* the old disk is there until the reconciler has removed it */
        CHECK_STR(record->uid, uid);
        device_store_free(store);

        store = open_store(disk);
        record = device_store_get(store, "data");
        CHECK(record && record->spec);
        CHECK_STR(record->uid, uid);
        CHECK_INT(record->generation, 6);
        CHECK_INT(record->number, 9);
        CHECK_INT(device_store_remove(store, "data"), 0);
        CHECK_INT(put_device(store, SPEC("data", "")), 0);
        CHECK(strcmp(device_store_get(store, "data")->uid, uid) != 0); /* another device of the same name */
        device_store_free(store);
}

static void test_conditions(struct disk *disk)
{
        static const struct {
                struct put_condition condition;
                const char *spec;
                int result;
                enum put_outcome outcome;
        } steps[] = {
                {{.mode = PUT_CREATE_OR_REPLACE, .match_any = true},      SPEC("data",  ""),                  -ESTALE, 0            },
                {{.mode = PUT_CREATE_OR_REPLACE, .match_generation = 1},  SPEC("data",  ""),                  -ESTALE, 0            },
                {{.mode = PUT_CREATE},                                    SPEC("data",  ""),                  0,       PUT_CREATED  },
                {{.mode = PUT_CREATE},                                    SPEC("data",  ""),                  0,       PUT_UNCHANGED},
                {{.mode = PUT_CREATE},                                    SPEC("data",  ",\"queueDepth\":1"), -EEXIST, 0            },
                {{.mode = PUT_CREATE_OR_REPLACE, .must_not_exist = true}, SPEC("data",  ""),                  -ESTALE, 0            },
                {{.mode = PUT_CREATE_OR_REPLACE, .match_generation = 2},  SPEC("data",  ",\"queueDepth\":1"),
                 -ESTALE,                                                                                              0            },
                {{.mode = PUT_CREATE_OR_REPLACE, .match_generation = 1},  SPEC("data",  ",\"queueDepth\":1"), 0,
                 PUT_REPLACED                                                                                                       },
                {{.mode = PUT_CREATE_OR_REPLACE, .match_any = true},      SPEC("data",  ",\"queueDepth\":2"), 0,
                 PUT_REPLACED                                                                                                       },
                {{.mode = PUT_CREATE, .must_not_exist = true},            SPEC("other", ""),                  0,       PUT_CREATED  },
        };
        struct device_store *store = open_store(disk);

        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                enum put_outcome outcome = PUT_UNCHANGED;
                char why[256];

                if (!CHECK_INT(put_why(store, steps[i].spec, &steps[i].condition, &outcome, why, sizeof(why)),
                            steps[i].result))
                        fprintf(stderr, "step %zu: %s\n", i, why);
                if (steps[i].result == 0)
                        CHECK_INT(outcome, steps[i].outcome);
                else
                        CHECK(strlen(why) > 0);
        }
        device_store_free(store);
}

static void test_numbers(struct disk *disk)
{
        const struct put_condition condition = {.mode = PUT_CREATE_OR_REPLACE};
        struct device_store *store = open_store(disk);
        enum put_outcome outcome;
        char why[256];

        CHECK_INT(put_device(store, SPEC("one", "")), 0);
        CHECK_INT(device_store_assign_number(store, "one", 4), 0);
        CHECK_INT(put_why(store, SPEC("two", ",\"id\":4"), &condition, &outcome, why, sizeof(why)),
                -EADDRINUSE);
        CHECK(strstr(why, "one"));
        CHECK(!device_store_get(store, "two"));
        CHECK_INT(put_device(store, SPEC("two", ",\"id\":5")), 0);
        CHECK_INT(device_store_assign_number(store, "one", 5), -EADDRINUSE);
        CHECK_INT(device_store_get(store, "one")->number, 4);
        CHECK_INT(device_store_assign_number(store, "three", 1), -ENOENT);
        device_store_free(store);
}

/* A failing save leaves memory, disk and subscribers as they were. */
static void test_failing_writes(struct disk *disk)
{
        struct device_store *store = open_store(disk);
        struct witness witness = {};
        uint64_t revision;

        CHECK_INT(put_device(store, SPEC("data", "")), 0);
        CHECK_INT(device_store_subscribe(store, on_event, &witness), 0);
        revision = device_store_revision(store);
        disk->fail = -ENOSPC;
        CHECK_INT(put_device(store, SPEC("data", ",\"queueDepth\":7")), -ENOSPC);
        CHECK_INT(put_device(store, SPEC("other", "")), -ENOSPC);
        CHECK_INT(device_store_request_delete(store, "data", false), -ENOSPC);
        CHECK_INT(device_store_request_recover(store, "data"), -ENOSPC);
        CHECK_INT(device_store_assign_number(store, "data", 3), -ENOSPC);
        CHECK_INT(device_store_set_held(store, "data", true), -ENOSPC);
        CHECK_INT(device_store_remove(store, "data"), -ENOSPC);
        CHECK_INT(device_store_count(store), 1);
        CHECK_INT(device_store_revision(store), revision);
        CHECK_INT(device_store_get(store, "data")->generation, 1);
        CHECK_INT(device_store_get(store, "data")->revision, revision);
        CHECK_INT(device_store_get(store, "data")->number, -1);
        CHECK(!device_store_get(store, "data")->deleting
                && !device_store_get(store, "data")->recover_requested);
        CHECK_STR(device_store_get(store, "data")->held_boot, "");
        for (size_t i = 0; i < _STORE_EVENT_MAX; i++)
                CHECK_INT(witness.counts[i], 0);
        disk->fail = 0;
        CHECK_INT(put_device(store, SPEC("data", ",\"queueDepth\":7")), 0);
        CHECK_INT(witness.counts[STORE_SPEC], 1);
        device_store_free(store);
}

static void test_intents(struct disk *disk)
{
        struct device_store *store = open_store(disk);
        const struct device_record *record;
        struct witness witness = {};

        CHECK_INT(device_store_subscribe(store, on_event, &witness), 0);
        CHECK_INT(put_device(store, SPEC("data", "")), 0);
        record = device_store_get(store, "data");
        CHECK_INT(device_store_request_recover(store, "data"), 0);
        CHECK_INT(device_store_request_recover(store, "data"), 0);
        CHECK_INT(witness.counts[STORE_INTENT], 2); /* asked twice, announced twice */
        CHECK(record->recover_requested);
        CHECK_INT(device_store_set_held(store, "data", true), 0);
        CHECK_INT(strlen(record->held_boot), UID_TEXT_SIZE - 1);
        CHECK_INT(device_store_set_held(store, "data", true), 0);
        CHECK_INT(witness.counts[STORE_INTENT], 3);
        CHECK(!record->recover_requested); /* done, or moot */
        CHECK_INT(put_device(store, SPEC("data", ",\"labels\":{}")), 0);
        CHECK_INT(strlen(record->held_boot), UID_TEXT_SIZE - 1);
        device_store_free(store);

        store = open_store(disk);
        record = device_store_get(store, "data");
        CHECK_INT(strlen(record->held_boot), UID_TEXT_SIZE - 1);
        CHECK(!record->recover_requested); /* it is Live again: what was asked for has been done */
        CHECK_INT(device_store_request_recover(store, "data"), 0);
        CHECK_INT(device_store_set_held(store, "data", false), 0);
        CHECK_STR(record->held_boot, "");
        CHECK(!record->recover_requested);
        CHECK_INT(device_store_set_held(store, "data", true), 0);
        CHECK_INT(put_device(store, SPEC("data", ",\"queueDepth\":3")), 0);
        CHECK_STR(record->held_boot, ""); /* a new disk has not lost a worker */
        CHECK_INT(device_store_request_delete(store, "data", false), 0);
        CHECK_INT(device_store_request_delete(store, "data", false), 0);
        CHECK_INT(put_device(store, SPEC("data", "")), -EBUSY);
        CHECK_INT(device_store_request_delete(store, "absent", false), -ENOENT);
        CHECK_INT(device_store_request_recover(store, "absent"), -ENOENT);
        CHECK_INT(device_store_request_restart(store, "absent", false), -ENOENT);
        CHECK_INT(device_store_set_held(store, "absent", true), -ENOENT);
        device_store_free(store);

        store = open_store(disk);
        CHECK(device_store_get(store, "data")->deleting);
        memset(&witness, 0, sizeof(witness));
        CHECK_INT(device_store_subscribe(store, on_event, &witness), 0);
        CHECK_INT(device_store_remove(store, "data"), 0);
        CHECK_INT(witness.counts[STORE_REMOVED], 1);
        CHECK_STR(witness.last, "data");
        CHECK_INT(device_store_remove(store, "data"), -ENOENT);
        device_store_free(store);
}

static void set_phase(
        struct device_store *store, const char *name, enum device_phase phase, const char *message)
{
        struct device_status status = {.phase = phase, .number = -1};

        CHECK_INT(device_status_explain(&status, REASON_STARTING, "%s", message), 0);
        CHECK_INT(device_store_set_status(store, name, &status), 0);
        device_status_clear(&status);
}

static void test_status(struct disk *disk)
{
        struct device_store *store = open_store(disk);
        const struct device_record *record;
        struct witness witness = {};
        unsigned writes;
        uint64_t ready_at, revision;

        CHECK_INT(put_device(store, SPEC("data", "")), 0);
        record = device_store_get(store, "data");
        CHECK_INT(device_store_subscribe(store, on_event, &witness), 0);
        writes = disk->writes;
        set_phase(store, "data", PHASE_STARTING, "one");
        set_phase(store, "data", PHASE_STARTING, "one");
        CHECK_INT(witness.counts[STORE_STATUS], 1);
        set_phase(store, "data", PHASE_LIVE, "two");
        ready_at = record->status.transition_at;
        CHECK(ready_at > 0);
        set_phase(store, "data", PHASE_LIVE, "three");
        CHECK_INT(record->status.transition_at, ready_at);
        CHECK_INT(witness.counts[STORE_STATUS], 3);
        CHECK_INT(disk->writes, writes); /* a status costs no write */
        CHECK_INT(record->revision, device_store_revision(store));
        for (int i = 0; i < 70000; i++)
                set_phase(store, "data", i % 2 ? PHASE_LIVE : PHASE_BACKOFF, "again");
        CHECK(disk->writes > writes && disk->writes < writes + 4);
        revision = device_store_revision(store);
        device_store_free(store); /* or a crash: nothing is written at the end */

        store = open_store(disk);
        CHECK(device_store_revision(store) >= revision); /* no revision is given out twice */
        device_store_free(store);
}

static void add_row(struct disk *disk, const char *name, const char *uid, const char *document)
{
        struct device_record record = {.generation = 4, .revision = 2, .epoch = 1, .number = -1};

        record.name = (char *)name;
        strcpy(record.uid, uid);
        CHECK_INT(disk_save(disk, &record, document, 10, NULL), 0);
}

static void test_quarantine(struct disk *disk)
{
        static const char uid[] = "00000000-0000-4000-8000-00000000000";
        static const char *const bad[] = {"", "not JSON", "[]", "{\"name\":\"x\"}",
                "{\"name\":\"other\",\"target\":{\"type\":\"null\"},\"size\":512}",
                "{\"target\":{\"type\":\"gone\"}}"};
        struct device_store *store;
        const struct device_record *record;
        cJSON *json;
        char name[16], full[UID_TEXT_SIZE];

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                snprintf(name, sizeof(name), "bad%zu", i);
                snprintf(full, sizeof(full), "%s%zu", uid, i);
                add_row(disk, name, full, bad[i]);
        }
        add_row(disk, "good", "00000000-0000-4000-8000-000000000009", SPEC("good", ""));
        store = open_store(disk);
        CHECK_INT(device_store_count(store), ARRAY_SIZE(bad) + 1);
        CHECK(device_store_get(store, "good")->spec && !device_store_get(store, "good")->quarantine);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                snprintf(name, sizeof(name), "bad%zu", i);
                record = device_store_get(store, name);
                if (!CHECK(record && !record->spec && record->quarantine))
                        continue;
                CHECK_INT(record->status.phase, PHASE_FAILED);
                CHECK_INT(record->status.reason, REASON_QUARANTINED);
                json = device_record_to_json(record, READER_OF_ALL);
                CHECK(cJSON_IsNull(cJSON_GetObjectItem(json, "spec")));
                cJSON_Delete(json);
        }
        CHECK_INT(device_store_request_delete(store, "bad0", false), 0);
        CHECK_STR(find_row(disk, "bad0")->document, bad[0]); /* kept as it was */
        CHECK_INT(device_store_remove(store, "bad0"), 0);
        CHECK_INT(put_device(store, SPEC("bad1", "")), 0);
        record = device_store_get(store, "bad1");
        CHECK(record->spec && !record->quarantine);
        CHECK_INT(record->generation, 5);
        CHECK_INT(record->epoch, 2);
        CHECK_INT(record->status.phase, PHASE_UNKNOWN); /* it may have a disk of the spec before */
        device_store_free(store);
}

static void test_thousands_in_order(struct disk *disk)
{
        struct device_store *store = open_store(disk);
        char text[128], last[DEVICE_NAME_MAX + 1] = "";
        size_t count = 0;

        for (unsigned i = 0; i < ROWS_MAX - 500; i++) {
                snprintf(text, sizeof(text), "{\"name\":\"d%u\",\"target\":{\"type\":\"null\"},\"size\":512}",
                        i * 7919 % 100000);
                CHECK_INT(put_device(store, text), 0);
        }
        DEVICE_STORE_FOREACH (record, store) {
                CHECK(strcmp(record->name, last) > 0);
                strcpy(last, record->name);
                count++;
        }
        CHECK_INT(count, ROWS_MAX - 500);
        CHECK(strcmp(device_store_next(store, "d1x")->name, "d1x") > 0); /* d1x itself does not exist */
        CHECK(!device_store_next(store, "z"));
        device_store_free(store);
}

struct leaver {
        struct device_store *store;
        unsigned calls;
};

static void leave(void *userdata, const struct store_event *event)
{
        struct leaver *leaver = userdata;

        CHECK(event->record);
        leaver->calls++;
        device_store_unsubscribe(leaver->store, leave, leaver);
}

static void test_subscribers_may_leave(struct disk *disk)
{
        struct device_store *store = open_store(disk);
        struct leaver first = {.store = store}, second = {.store = store};
        struct witness witness = {};

        CHECK_INT(device_store_subscribe(store, leave, &first), 0);
        CHECK_INT(device_store_subscribe(store, leave, &second), 0);
        CHECK_INT(device_store_subscribe(store, on_event, &witness), 0);
        CHECK_INT(put_device(store, SPEC("one", "")), 0);
        CHECK_INT(put_device(store, SPEC("two", "")), 0);
        CHECK_INT(first.calls, 1);
        CHECK_INT(second.calls, 1);
        CHECK_INT(witness.counts[STORE_SPEC], 2);
        device_store_unsubscribe(store, on_event, &witness);
        CHECK_INT(put_device(store, SPEC("three", "")), 0);
        CHECK_INT(witness.counts[STORE_SPEC], 2);
        device_store_free(store);
}

int main(void)
{
        static void (*const tests[])(struct disk *) = {test_generations_and_epochs, test_conditions,
                test_numbers, test_failing_writes, test_intents, test_status, test_quarantine,
                test_thousands_in_order, test_subscribers_may_leave};

        for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
                struct disk *disk = calloc(1, sizeof(*disk));

                if (!disk)
                        return 1;
                tests[i](disk);
                disk_clear(disk);
                free(disk);
        }
        return check_report();
}
