/* SPDX-License-Identifier: MIT */
/* event_log: order, repetitions, and the bounds. */
#include "ublkd/store/event_log.h"

#include "tests/unit/check.h"

#include <stdlib.h>

enum { SECOND = 1000 * 1000, SEED = 20260101, ROUNDS = 20000, UIDS = 30 };

static const uint64_t start = UINT64_C(1700000000) * SECOND;

static void happen_to(struct event_log *log, const char *name, const char *uid, enum condition_reason reason,
        uint64_t revision, uint64_t at)
{
        struct device_event *event = NULL;
        const struct device_event happened = {
                .type = EVENT_WARNING,
                .device = (char *)name,
                .uid = (char *)uid,
                .reason = reason,
                .message = (char *)"It happened.",
                .last_at = at,
        };

        if (CHECK_INT(event_log_make(log, &happened, revision, &event), 0))
                event_log_take(log, event, false);
}

static void happen(
        struct event_log *log, const char *uid, enum condition_reason reason, uint64_t revision, uint64_t at)
{
        happen_to(log, "data", uid, reason, revision, at);
}

static void test_disks_without_a_record_are_distinguished(struct event_log *log)
{
        happen_to(log, "/dev/ublkb0", "", REASON_DISK_OF_NO_DEVICE, 1, start);
        happen_to(log, "/dev/ublkb1", "", REASON_DISK_OF_NO_DEVICE, 2, start);
        happen_to(log, "/dev/ublkb0", "", REASON_DISK_OF_NO_DEVICE, 3, start + SECOND);
        CHECK_INT(event_log_count(log), 2);
        CHECK_INT(event_log_at(log, 1)->count, 2);
}

static void test_what_is_apart_repeats_nothing(struct event_log *log)
{
        for (uint64_t revision = 1; revision <= 3; revision++) {
                const struct device_event happened = {
                        .device = (char *)"data",
                        .uid = (char *)"a",
                        .reason = REASON_SPEC_CHANGED,
                        .message = (char *)"It was changed.",
                        .last_at = start,
                        .apart = true,
                };
                struct device_event *event;

                if (CHECK_INT(event_log_make(log, &happened, revision, &event), 0))
                        event_log_take(log, event, false);
        }
        CHECK_INT(event_log_count(log), 3);
        CHECK_INT(event_log_at(log, 2)->count, 1);
}

static void test_repetitions_move_to_the_end(struct event_log *log)
{
        const struct device_event *event;

        happen(log, "a", reason_from_string("Died"), 10, start);
        happen(log, "b", reason_from_string("Died"), 11, start + SECOND);
        happen(log, "a", reason_from_string("Other"), 12, start + 2 * SECOND);
        happen(log, "a", reason_from_string("Died"), 15, start + 3 * SECOND);
        if (!CHECK_INT(event_log_count(log), 3))
                return;
        CHECK_INT(event_log_at(log, 0)->revision, 11);
        event = event_log_at(log, 2);
        CHECK_INT(event->revision, 15);
        CHECK_INT(event->first_revision, 10);
        CHECK_INT(event->count, 2);
        CHECK(event->first_at == start && event->last_at == start + 3 * SECOND);
        CHECK_INT(event_log_after(log, 0), 0);
        CHECK_INT(event_log_after(log, 11), 1);
        CHECK_INT(event_log_after(log, 14), 2);
        CHECK_INT(event_log_after(log, 15), 3);
        CHECK_INT(event_log_compacted(log), 0);
}

static void test_long_after_is_not_a_repetition(struct event_log *log)
{
        happen(log, "a", REASON_LIVE, 1, start);
        happen(log, "a", REASON_LIVE, 2, start + (uint64_t)(EVENT_REPEAT_SECONDS + 1) * SECOND);
        CHECK_INT(event_log_count(log), 2);
        CHECK_INT(event_log_at(log, 1)->count, 1);
}

static void test_number_is_bounded(struct event_log *log)
{
        char uid[16];

        for (int i = 0; i < EVENTS_MAX + 10; i++) {
                snprintf(uid, sizeof(uid), "%d", i);
                happen(log, uid, REASON_LIVE, (uint64_t)i * 2 + 2, start);
        }
        CHECK_INT(event_log_count(log), EVENTS_MAX);
        CHECK_INT(event_log_compacted(log), 20);
        CHECK_INT(event_log_at(log, 0)->revision, 22);
        CHECK_INT(event_log_unsaved(log, NULL, 0), EVENTS_MAX);
        event_log_saved(log);
        CHECK_INT(event_log_unsaved(log, NULL, 0), 0);
}

/* A flapping device does not push out the events of other devices. */
static void test_flapping_device_keeps_its_place(struct event_log *log)
{
        happen(log, "quiet", REASON_CREATED, 1, start);
        for (uint64_t i = 0; i < 100000; i++)
                happen(log, "loud", i % 2 ? REASON_WORKER_DIED : REASON_STARTING, 2 + i,
                        start + i * SECOND / 10);
        CHECK_INT(event_log_count(log), 3);
        CHECK_STR(event_log_at(log, 0)->uid, "quiet");
        CHECK_INT(event_log_at(log, 2)->count, 50000);
}

static void test_age_is_bounded(struct event_log *log)
{
        happen(log, "a", REASON_LIVE, 5, start);
        happen(log, "b", REASON_LIVE, 6, start + SECOND);
        happen(log, "c", REASON_LIVE, 7, start + (uint64_t)EVENT_AGE_MAX_SECONDS * SECOND + 1);
        CHECK_INT(event_log_count(log), 2);
        CHECK_INT(event_log_compacted(log), 5);
}

static void test_loaded_in_any_order(struct event_log *log)
{
        static const uint64_t revisions[] = {30, 10, 20};

        for (size_t i = 0; i < 3; i++)
                CHECK_INT(event_log_load(log,
                                  &(struct device_event){
                                          .revision = revisions[i],
                                          .first_revision = revisions[i],
                                          .last_at = start,
                                          .count = 1,
                                          .device = (char *)"data",
                                          .uid = (char *)"a",
                                          .reason = REASON_LIVE,
                                          .message = (char *)"",
                                  }),
                        0);
        event_log_loaded(log, 7, start);
        CHECK_INT(event_log_count(log), 3);
        CHECK_INT(event_log_at(log, 0)->revision, 10);
        CHECK_INT(event_log_compacted(log), 7);
        CHECK_INT(event_log_unsaved(log, NULL, 0), 0);
        happen(log, "a", REASON_LIVE, 40, start); /* another type: no repetition */
        CHECK_INT(event_log_count(log), 4);
        CHECK_INT(event_log_unsaved(log, NULL, 0), 1);
}

static void test_long_messages_are_cut(struct event_log *log)
{
        char message[3 * EVENT_MESSAGE_MAX];
        struct device_event *event = NULL;

        memset(message, 'x', sizeof(message) - 1);
        message[sizeof(message) - 1] = '\0';
        if (!CHECK_INT(event_log_make(log,
                               &(struct device_event){
                                       .device = (char *)"data",
                                       .uid = (char *)"a",
                                       .reason = REASON_LIVE,
                                       .message = message,
                               },
                               1, &event),
                    0))
                return;
        CHECK_INT(strlen(event->message), EVENT_MESSAGE_MAX - 1);
        device_event_free(event);
}

/* What the log should hold, found by a look at each event. */
struct model {
        struct fate {
                int uid;
                enum condition_reason reason;
                uint64_t revision, first_revision, count, at;
        } fates[EVENTS_MAX + 1];
        size_t count;
};

static void model_remove(struct model *model, size_t i)
{
        model->count--;
        memmove(&model->fates[i], &model->fates[i + 1], (model->count - i) * sizeof(model->fates[0]));
}

static void model_happen(struct model *model, struct fate fate)
{
        fate.first_revision = fate.revision;
        fate.count = 1;
        for (size_t i = model->count; i-- > 0;) {
                const struct fate old = model->fates[i];

                if (old.uid != fate.uid || old.reason != fate.reason
                        || old.at + EVENT_REPEAT_SECONDS * (uint64_t)SECOND < fate.at)
                        continue;
                fate.first_revision = old.first_revision;
                fate.count = old.count + 1;
                model_remove(model, i);
                break;
        }
        model->fates[model->count++] = fate;
        if (model->count > EVENTS_MAX)
                model_remove(model, 0);
}

static void check_model(const struct event_log *log, const struct model *model)
{
        if (!CHECK_INT(event_log_count(log), model->count))
                return;
        for (size_t i = 0; i < model->count; i++) {
                CHECK_INT(event_log_at(log, i)->revision, model->fates[i].revision);
                CHECK_INT(event_log_at(log, i)->first_revision, model->fates[i].first_revision);
                CHECK_INT(event_log_at(log, i)->count, model->fates[i].count);
        }
}

static void test_random_events(struct event_log *log)
{
        static const enum condition_reason reasons[] = {REASON_LIVE, REASON_WORKER_DIED, REASON_LIVE};
        static struct model model;
        uint64_t at = start;

        srand(SEED);
        for (uint64_t revision = 1; revision <= ROUNDS; revision++) {
                struct fate fate = {
                        .uid = rand() % UIDS, .reason = reasons[rand() % 3], .revision = revision};
                char uid[16];

                at += (uint64_t)(rand() % (rand() % 8 ? 5 : 600)) * SECOND;
                fate.at = at;
                snprintf(uid, sizeof(uid), "uid-%d", fate.uid);
                happen(log, uid, fate.reason, revision, at);
                model_happen(&model, fate);
                if (revision % 1000 == 0)
                        check_model(log, &model);
        }
        CHECK(model.count > ROUNDS / 10);
}

/* An event is found by its own revision, also when a repetition has taken its place. */
static void test_fate(struct event_log *log)
{
        const struct device_event what = {.type = EVENT_WARNING,
                .device = (char *)"data",
                .uid = (char *)"a",
                .reason = REASON_WORKER_DIED};

        happen(log, "a", REASON_WORKER_DIED, 5, start);
        CHECK_INT(event_log_fate(log, &what, 4), EVENT_LOST);
        CHECK_INT(event_log_fate(log, &what, 5), EVENT_WAITS);
        event_log_saved(log);
        CHECK_INT(event_log_fate(log, &what, 5), EVENT_SAVED);
        happen(log, "b", REASON_WORKER_DIED, 6, start);
        CHECK_INT(event_log_fate(log, &what, 6), EVENT_LOST);
        happen(log, "a", REASON_WORKER_DIED, 7, start + SECOND);
        CHECK_INT(event_log_fate(log, &what, 5), EVENT_WAITS);
        CHECK_INT(event_log_fate(log, &what, 7), EVENT_WAITS);
        CHECK_INT(event_log_fate(log, &what, 8), EVENT_LOST);
        event_log_loaded(log, 20, 0); /* all up to there were compacted away */
        CHECK_INT(event_log_fate(log, &what, 8), EVENT_SAVED);
}

static void happen_as(struct event_log *log, const char *tenant, uint64_t revision, bool apart)
{
        struct device_event *event = NULL;
        struct device_event happened = {
                .type = EVENT_NORMAL,
                .device = (char *)"data",
                .uid = (char *)"a",
                .reason = REASON_LIVE,
                .message = (char *)"It happened.",
                .apart = apart,
                .last_at = start,
        };

        snprintf(happened.tenant, sizeof(happened.tenant), "%s", tenant);
        if (CHECK_INT(event_log_make(log, &happened, revision, &event), 0))
                event_log_take(log, event, true);
}

static void happen_of(struct event_log *log, const char *tenant, uint64_t revision)
{
        happen_as(log, tenant, revision, true);
}

static size_t count_from(const struct event_log *log, const char *tenant)
{
        size_t count = 0;

        for (size_t i = 0; i < event_log_count(log); i++)
                count += strcmp(event_log_at(log, i)->tenant, tenant) == 0;
        return count;
}

/* It loses its own, and who sees only events of others has missed nothing. */
static void test_a_tenant_pushes_out_no_event_of_others(struct event_log *log)
{
        uint64_t revision = 1, floor;

        happen_of(log, "", revision++);
        happen_of(log, "uid:2", revision++);
        for (int i = 0; i < 3 * EVENTS_MAX; i++) {
                happen_of(log, "uid:1", revision++);
                CHECK(count_from(log, "uid:1") <= EVENTS_OF_ACCOUNT_MAX);
        }
        CHECK(count_from(log, "uid:1") >= EVENTS_OF_ACCOUNT_KEPT);
        CHECK_INT(count_from(log, ""), 1);
        CHECK_INT(count_from(log, "uid:2"), 1);
        CHECK_INT(event_log_newest(log), revision - 1);
        CHECK_INT(event_log_compacted(log), 0);
        CHECK_INT(event_log_compacted_of(log, "uid:2"), 0);
        floor = event_log_compacted_of(log, "uid:1");
        CHECK_INT(event_log_compacted_of(log, NULL), floor);
        CHECK_INT(event_log_at(log, 2)->revision,
                floor + 1); /* no gap between what is gone and what is there */
        CHECK(event_log_has_dropped(log));
        event_log_saved(log);
        CHECK(!event_log_has_dropped(log));
}

/* The floor is not in the database, and is found again. */
static void test_the_floor_of_a_tenant_outlasts_a_restart(struct event_log *log)
{
        struct event_log *next;
        uint64_t revision = 1;

        for (int i = 0; i < EVENTS_OF_ACCOUNT_KEPT - 1; i++) /* never had more */
                happen_of(log, "uid:2", revision++);
        for (int i = 0; i < EVENTS_OF_ACCOUNT_MAX + 1; i++)
                happen_of(log, "uid:1", revision++);
        CHECK_INT(count_from(log, "uid:1"), EVENTS_OF_ACCOUNT_KEPT);
        if (!CHECK_INT(event_log_new(&next), 0))
                return;
        for (size_t i = 0; i < event_log_count(log); i++)
                CHECK_INT(event_log_load(next, event_log_at(log, i)), 0);
        event_log_loaded(next, 0, start);
        CHECK_INT(event_log_compacted_of(next, "uid:1"), event_log_compacted_of(log, "uid:1"));
        CHECK(event_log_compacted_of(next, "uid:1") > 0);
        CHECK_INT(event_log_compacted_of(next, "uid:2"), 0);
        event_log_free(next);
}

static size_t count_of_uid(const struct event_log *log, const char *uid)
{
        size_t count = 0;

        for (size_t i = 0; i < event_log_count(log); i++)
                count += strcmp(event_log_at(log, i)->uid, uid) == 0;
        return count;
}

/* Before, a worker that was taken over made as many events as it took to push out those of all other disks. */
static void test_a_device_pushes_out_no_event_of_others(struct event_log *log)
{
        uint64_t revision = 1, floor;

        happen(log, "quiet", REASON_LIVE, revision++, start);
        happen_of(log, "uid:2", revision++);
        happen_to(log, "/dev/ublkb0", "", REASON_DISK_OF_NO_DEVICE, revision++, start);
        for (int i = 0; i < 3 * EVENTS_MAX; i++) {
                happen_of(log, "", revision++);
                CHECK(event_log_count(log) <= EVENTS_OF_ACCOUNT_MAX + 3);
        }
        CHECK(count_of_uid(log, "a") >= EVENTS_OF_ACCOUNT_KEPT);
        CHECK_INT(count_of_uid(log, "quiet"), 1);
        CHECK_INT(count_of_uid(log, ""), 1);
        CHECK_INT(event_log_compacted(log), 0);
        CHECK_INT(event_log_compacted_of(log, "uid:2"), 0);
        floor = event_log_compacted_of(log, NULL); /* the administrators list again */
        CHECK_INT(event_log_at(log, 3)->revision, floor + 1);
        event_log_set_accounts(log, NULL, NULL); /* a reload: no tenant has lost an event */
        CHECK_INT(event_log_compacted_of(log, "uid:2"), 0);
}

static void test_the_floor_of_a_device_outlasts_a_restart(struct event_log *log)
{
        struct event_log *next;
        uint64_t revision = 1;

        happen(log, "quiet", REASON_LIVE, revision++, start);
        for (int i = 0; i < EVENTS_OF_ACCOUNT_MAX + 1; i++)
                happen_of(log, "", revision++);
        CHECK_INT(count_of_uid(log, "a"), EVENTS_OF_ACCOUNT_KEPT);
        if (!CHECK_INT(event_log_new(&next), 0))
                return;
        for (size_t i = 0; i < event_log_count(log); i++)
                CHECK_INT(event_log_load(next, event_log_at(log, i)), 0);
        event_log_loaded(next, 0, start);
        CHECK(event_log_compacted_of(next, NULL) > 0);
        CHECK_INT(event_log_compacted_of(next, NULL), event_log_compacted_of(log, NULL));
        CHECK_INT(event_log_compacted_of(next, "uid:2"), 0);
        event_log_free(next);
}

/* 100000 and those after it are of one account. */
static uint32_t first_of_account(void *userdata _unused_, uid_t uid)
{
        return uid < 100000 ? uid : 100000;
}

/* Each of its users has only some. */
static void test_the_users_of_an_account_push_out_no_event_of_others(struct event_log *log)
{
        struct event_log *next;
        uint64_t revision = 1, floor;
        char tenant[TENANT_SIZE];

        event_log_set_accounts(log, first_of_account, NULL);
        happen_of(log, "", revision++);
        happen_of(log, "uid:2", revision++);
        for (unsigned i = 0; i < 3 * EVENTS_MAX; i++) {
                snprintf(tenant, sizeof(tenant), "uid:%u", 100000 + i % 1000);
                happen_of(log, tenant, revision++);
                CHECK(event_log_count(log) <= EVENTS_OF_ACCOUNT_MAX + 2);
        }
        CHECK_INT(count_from(log, ""), 1);
        CHECK_INT(count_from(log, "uid:2"), 1);
        CHECK_INT(event_log_compacted(log), 0);
        CHECK_INT(event_log_compacted_of(log, "uid:2"), 0);
        CHECK_INT(event_log_floors(log)->count, 1);
        floor = event_log_compacted_of(log, "uid:100999");
        CHECK(floor > 0);
        CHECK_INT(event_log_compacted_of(log, "uid:100001"), floor);

        if (!CHECK_INT(event_log_new(&next), 0))
                return;
        for (size_t i = 0; i < event_log_count(log); i++)
                CHECK_INT(event_log_load(next, event_log_at(log, i)), 0);
        event_log_loaded(next, 0, start);
        CHECK_INT(event_log_compacted_of(next, "uid:2"), 0);
        /* The policy may have moved uids to another account since then, and from one that has lost events. */
        event_log_set_accounts(next, first_of_account, NULL);
        CHECK_INT(event_log_compacted_of(next, "uid:100001"), floor);
        CHECK_INT(event_log_compacted_of(next, "uid:2"), floor);
        event_log_free(next);

        CHECK_INT(event_log_compacted_of(log, "uid:2"), 0);
        event_log_set_accounts(log, first_of_account, NULL); /* the same at a reload */
        CHECK_INT(event_log_compacted_of(log, "uid:2"), floor);
}

static uint32_t each_alone(void *userdata _unused_, uid_t uid)
{
        return uid;
}

/* Else the account would have fewer events than its floor is found again by. */
static void test_a_repetition_stays_with_the_account(struct event_log *log)
{
        event_log_set_accounts(log, first_of_account, NULL);
        happen_of(log, "uid:100001", 1);
        event_log_set_accounts(log, each_alone, NULL);
        happen_as(log, "uid:100001", 2, false);
        if (!CHECK_INT(event_log_count(log), 1))
                return;
        CHECK_INT(event_log_at(log, 0)->count, 2);
        CHECK_STR(event_log_at(log, 0)->account, "uid:100000");
        happen_of(log, "uid:100001", 3); /* another event */
        CHECK_STR(event_log_at(log, 1)->account, "uid:100001");
}

/* More tenants than there are floors: what was dropped is gone for all then, and nothing is missed unseen. */
static void test_many_tenants_with_many_events(struct event_log *log)
{
        uint64_t revision = 1, floors[EVENT_FLOORS_MAX + 1];
        char tenant[TENANT_SIZE];

        for (unsigned who = 0; who <= EVENT_FLOORS_MAX; who++) {
                snprintf(tenant, sizeof(tenant), "uid:%u", who + 1);
                for (int i = 0; i < EVENTS_OF_ACCOUNT_MAX + 1; i++)
                        happen_of(log, tenant, revision++);
                floors[who] = event_log_compacted_of(log, tenant);
                CHECK(floors[who] > 0);
        }
        for (unsigned who = 0; who <= EVENT_FLOORS_MAX; who++) {
                snprintf(tenant, sizeof(tenant), "uid:%u", who + 1);
                CHECK(event_log_compacted_of(log, tenant) >= floors[who]);
        }
        CHECK(event_log_compacted(log) >= floors[0]);
        CHECK(event_log_count(log) <= EVENTS_MAX);
}

/* Before, all of them shared one account. */
static void test_disks_without_a_record_have_no_account(struct event_log *log)
{
        uint64_t revision = 1;
        char disk[32];

        for (int i = 0; i < EVENTS_OF_ACCOUNT_MAX + 10; i++) {
                snprintf(disk, sizeof(disk), "/dev/ublkb%d", i);
                happen_to(log, disk, UID_OF_NO_DEVICE, REASON_DISK_OF_NO_DEVICE, revision++, start);
        }
        CHECK_INT(event_log_count(log), EVENTS_OF_ACCOUNT_MAX + 10);
        CHECK_INT(event_log_compacted_of(log, NULL), 0);
}

int main(void)
{
        static void (*const tests[])(struct event_log *) = {test_repetitions_move_to_the_end,
                test_what_is_apart_repeats_nothing, test_disks_without_a_record_are_distinguished,
                test_long_after_is_not_a_repetition, test_number_is_bounded,
                test_flapping_device_keeps_its_place, test_age_is_bounded, test_loaded_in_any_order,
                test_long_messages_are_cut, test_random_events, test_fate,
                test_a_tenant_pushes_out_no_event_of_others, test_the_floor_of_a_tenant_outlasts_a_restart,
                test_the_users_of_an_account_push_out_no_event_of_others,
                test_a_device_pushes_out_no_event_of_others, test_the_floor_of_a_device_outlasts_a_restart,
                test_a_repetition_stays_with_the_account, test_disks_without_a_record_have_no_account,
                test_many_tenants_with_many_events};

        for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
                struct event_log *log;

                if (!CHECK_INT(event_log_new(&log), 0))
                        return 1;
                tests[i](log);
                event_log_free(log);
        }
        return check_report();
}
