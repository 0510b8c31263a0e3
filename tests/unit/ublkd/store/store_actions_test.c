/* SPDX-License-Identifier: MIT */
/* The actions of a device in the store: one at a time, an id each, kept over a restart of ublkd. */
#include "ublkd/store/store_actions.h"
#include "tests/unit/ublkd/store/store_directory.h"

#include "tests/unit/check.h"
#include "tests/unit/put_device.h"

#include <errno.h>
#include <string.h>

static const struct action_end good = {.state = DEVICE_ACTION_SUCCEEDED,
        .reason = REASON_ACTION_SUCCEEDED,
        .message = "The action scrub has ended.",
        .result = "{\"bytesRead\":9007199254740992}"};

static const struct device_action *newest(const struct device_store *store)
{
        const struct device_actions *actions = device_store_get(store, "data")->actions;

        return actions && actions->count > 0 ? actions->items[actions->count - 1] : NULL;
}

static enum condition_reason last_event(const struct device_store *store)
{
        const struct event_log *events = device_store_events(store);

        return event_log_at(events, event_log_count(events) - 1)->reason;
}

static void test_one_at_a_time(const char *directory)
{
        struct device_store *store = open_store(directory);
        uint64_t first, second;

        put_null_disk(store, "data", "");
        CHECK_INT(device_store_begin_action(store, "none", "scrub", "{}", &first), -ENOENT);
        CHECK_INT(device_store_begin_action(store, "data", "scrub", "{\"rate\":65536}", &first), 0);
        CHECK_INT(last_event(store), REASON_ACTION_STARTED);
        CHECK_INT(newest(store)->state, DEVICE_ACTION_PENDING);
        CHECK_INT(device_store_begin_action(store, "data", "scrub", "{}", &second), -EBUSY);
        CHECK_INT(device_store_run_action(store, "data", first + 1), -ENOENT);
        CHECK_INT(device_store_run_action(store, "data", first), 0);
        CHECK_INT(device_store_set_action_progress(store, "data", first, 5, 10), 0);
        CHECK_INT(device_store_end_action(store, "data", first, &good), 0);
        CHECK_INT(last_event(store), REASON_ACTION_SUCCEEDED);
        CHECK_INT(device_store_end_action(store, "data", first, &good), -ENOENT);
        CHECK_INT(device_store_run_action(store, "data", first), -ENOENT);
        CHECK_INT(device_store_begin_action(store, "data", "scrub", "{}", &second), 0);
        CHECK(second > first);
        CHECK_INT(device_store_end_action(store, "data", first, &good), -ENOENT); /* the next is another */
        CHECK_INT(newest(store)->state, DEVICE_ACTION_PENDING);
        device_store_free(store);
}

static void test_kept(const char *directory)
{
        struct device_store *store = open_store(directory);
        const struct device_action *action;
        uint64_t id, next;

        put_null_disk(store, "data", "");
        CHECK_INT(device_store_begin_action(store, "data", "scrub", "{\"rate\":65536}", &id), 0);
        CHECK_INT(device_store_run_action(store, "data", id), 0);
        CHECK_INT(device_store_cancel_action(store, "data", id), 0);
        CHECK_INT(device_store_cancel_action(store, "data", id), 0);
        put_null_disk(store, "data", ",\"labels\":{\"a\":\"b\"}"); /* a change of the spec keeps it */
        device_store_free(store);
        store = open_store(directory);
        action = newest(store);
        CHECK(action && action->id == id && action->state == DEVICE_ACTION_RUNNING
                && action->cancel_requested);
        CHECK_STR(action->verb, "scrub");
        CHECK_STR(action->arguments, "{\"rate\":65536}");
        CHECK(action->created_at > 0 && action->started_at >= action->created_at && action->ended_at == 0);
        CHECK_INT(device_store_set_action_progress(store, "data", id, 5, 10), 0);
        CHECK_INT(device_store_end_action(store, "data", id, &good), 0);
        device_store_free(store);
        store = open_store(directory);
        action = newest(store);
        CHECK(action->done == 5 && action->total == 10 && action->ended_at > 0);
        CHECK_STR(action->result, good.result);
        CHECK_STR(action->message, good.message);
        CHECK_INT(action->reason, REASON_ACTION_SUCCEEDED);
        CHECK_INT(device_store_cancel_action(store, "data", id), 0); /* has ended */
        CHECK(newest(store)->state == DEVICE_ACTION_SUCCEEDED);
        CHECK_INT(device_store_begin_action(store, "data", "scrub", "{}", &next), 0);
        CHECK(next > id);
        CHECK_INT(device_store_remove(store, "data"), 0);
        put_null_disk(store, "data", ""); /* another device of the name */
        CHECK(!newest(store));
        device_store_free(store);
}

static void test_a_bounded_number(const char *directory)
{
        struct device_store *store = open_store(directory);
        uint64_t id = 0, first = 0;

        put_null_disk(store, "data", "");
        for (size_t i = 0; i < 3 * DEVICE_ACTIONS_KEPT; i++) {
                const size_t ended = i < DEVICE_ACTIONS_KEPT ? i : DEVICE_ACTIONS_KEPT;

                CHECK_INT(device_store_begin_action(store, "data", "scrub", "{}", &id), 0);
                CHECK_INT(device_store_get(store, "data")->actions->count, ended + 1);
                CHECK_INT(device_store_end_action(store, "data", id, &good), 0);
                CHECK(device_store_get(store, "data")->actions->count <= DEVICE_ACTIONS_KEPT);
                CHECK_INT(newest(store)->id, id);
                first = i == 0 ? id : first;
        }
        device_store_free(store);
        store = open_store(directory);
        CHECK_INT(device_store_get(store, "data")->actions->count, DEVICE_ACTIONS_KEPT);
        CHECK_INT(device_store_begin_action(store, "data", "scrub", "{}", &id), 0);
        CHECK_INT(device_store_get(store, "data")->actions->count, DEVICE_ACTIONS_KEPT + 1);
        CHECK(!device_actions_find(device_store_get(store, "data")->actions, first));
        CHECK_INT(device_store_cancel_action(store, "data", first), -ENOENT);
        device_store_free(store);
}

/* What is not ours in the column does not keep ublkd from starting. */
static void test_rubbish(const char *directory)
{
        struct device_store *store = open_store(directory);

        put_null_disk(store, "data", "");
        device_store_free(store);
        execute(directory, "UPDATE device SET actions = '[1, {}, {\"id\":\"x\"}, "
                           "{\"id\":3,\"verb\":\"a\",\"arguments\":{}}]'");
        store = open_store(directory);
        CHECK(newest(store) && newest(store)->id == 3 && device_action_has_ended(newest(store)));
        device_store_free(store);
        execute(directory, "UPDATE device SET actions = 'rubbish'");
        store = open_store(directory);
        CHECK(!newest(store));
        device_store_free(store);
}

int main(void)
{
        in_a_new_directory(test_one_at_a_time);
        in_a_new_directory(test_kept);
        in_a_new_directory(test_a_bounded_number);
        in_a_new_directory(test_rubbish);
        return check_report();
}
