/* SPDX-License-Identifier: MIT */
/* event_writer: reports when writing begins to fail and when it works again. host: reports the problems of the
 * state directory. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/store/store_faulty.h"

#include "ublkd/base/clock.h"
#include "ublkd/store/event_log.h"
#include "ublkd/store/event_writer.h"
#include "ublkd/host/host.h"

#include <stdlib.h>

struct outcome {
        unsigned times;
        int error; /* of the last time */
};

static void on_changed(void *userdata, int error)
{
        struct outcome *outcome = userdata;

        outcome->times++;
        outcome->error = error;
}

static void run_until_reported(sd_event *event, const struct outcome *outcome, unsigned times)
{
        while (outcome->times < times)
                if (!CHECK(sd_event_run(event, UINT64_MAX) >= 0))
                        abort();
}

static void test_a_disk_that_is_full_for_a_while(void)
{
        struct store_faulty disk = {.write_error = -ENOSPC};
        struct device_store *store;
        struct event_writer *writer;
        struct outcome outcome = {};
        sd_event *event;

        CHECK_INT(store_memory_open(&disk.real, &disk.real_context), 0);
        CHECK_INT(device_store_new(&store_faulty_backend, &disk, &store), 0);
        CHECK(sd_event_new(&event) >= 0);
        CHECK_INT(
                event_writer_new(
                        &(struct event_writer_config){
                                .event = event, .store = store, .changed = on_changed, .userdata = &outcome},
                        &writer),
                0);
        event_writer_retry(writer); /* nothing has failed */
        CHECK_INT(outcome.times, 0);
        device_store_note_disk(store, 7, EVENT_WARNING, REASON_DISK_OF_NO_DEVICE, "It happened.");
        run_until_reported(event, &outcome, 1);
        CHECK_INT(outcome.error, -ENOSPC);
        event_writer_retry(writer);
        CHECK_INT(outcome.times, 1); /* that is known */
        disk.write_error = 0;
        event_writer_retry(writer);
        CHECK_INT(outcome.times, 2);
        CHECK_INT(outcome.error, 0);
        event_writer_retry(writer);
        CHECK_INT(outcome.times, 2);
        event_writer_free(writer);
        sd_event_unref(event);
        device_store_free(store);
}

/* An alarm of the test's own ends each run of the loop, so that an event that is not written fails and does
 * not hang. */
static int on_alarm(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        *(bool *)userdata = true;
        return 0;
}

/* Whether all events are written within a minute: the writer promises a second, this machine may be busy. */
static bool is_written_soon(sd_event *event, const struct device_store *store)
{
        sd_event_source *alarm = NULL;
        bool late = false;

        if (!CHECK(sd_event_add_time_relative(
                           event, &alarm, CLOCK_MONOTONIC, 60 * USEC_PER_SEC, 1, on_alarm, &late)
                    >= 0))
                return false;
        while (!late && event_log_unsaved(device_store_events(store), NULL, 0) > 0)
                if (!CHECK(sd_event_run(event, UINT64_MAX) >= 0))
                        abort();
        sd_event_source_disable_unref(alarm);
        return !late;
}

static void test_a_repetition_is_written_as_soon_as_a_new_event(void)
{
        struct outcome outcome = {};
        void *context;
        const struct device_backend *backend;
        const struct device_event *died;
        struct device_store *store;
        struct event_writer *writer;
        sd_event *event;

        CHECK_INT(store_memory_open(&backend, &context), 0);
        CHECK_INT(device_store_new(backend, context, &store), 0);
        CHECK(sd_event_new(&event) >= 0);
        CHECK_INT(
                event_writer_new(
                        &(struct event_writer_config){
                                .event = event, .store = store, .changed = on_changed, .userdata = &outcome},
                        &writer),
                0);
        for (unsigned times = 1; times <= 3; times++) {
                device_store_note_disk(store, 7, EVENT_WARNING, REASON_WORKER_DIED, "The worker died.");
                CHECK(is_written_soon(event, store));
                died = event_log_at(
                        device_store_events(store), event_log_count(device_store_events(store)) - 1);
                CHECK_INT(died->count, times);
        }
        event_writer_free(writer);
        sd_event_unref(event);
        device_store_free(store);
}

static void test_the_state_directory(void)
{
        struct host host = {};
        struct state_room room;

        host_read_room("/proc", &room); /* has no blocks, of which none is free */
        CHECK_INT(host_report_state(&host, "/proc", &room, 0), 0);
        CHECK_INT(host.state.count, 0);
        CHECK_INT(host_report_state(&host, "/proc", &room, -EIO), 0);
        if (CHECK_INT(host.state.count, 1)) {
                CHECK_STR(host.state.items[0].reason, "StateDirectoryFails");
                CHECK(strstr(host.state.items[0].detail, "/proc"));
                CHECK(strstr(host.state.items[0].detail, "Input/output error"));
        }
        CHECK_INT(host_report_state(&host, "/proc", &room, 0), 0); /* it is over */
        CHECK_INT(host.state.count, 0);
        room = (struct state_room){.answer = STATE_ANSWERS, .limited = true, .bytes = 4096};
        CHECK_INT(host_report_state(&host, "/proc", &room, 0), 1);
        if (CHECK_INT(host.state.count, 1))
                CHECK(strstr(host.state.items[0].detail, "4 KiB"));
        room = (struct state_room){.answer = STATE_HANGS};
        CHECK_INT(host_report_state(&host, "/proc", &room, -ENOLINK), 0);
        if (CHECK_INT(host.state.count, 1))
                CHECK_STR(host.state.items[0].reason, "StateDirectoryHangs");
        room = (struct state_room){.answer = STATE_NOT_SEEN}; /* known without a look, and reported */
        CHECK_INT(host_report_state(&host, "/proc", &room, -ENOLINK), 0);
        if (CHECK_INT(host.state.count, 1))
                CHECK_STR(host.state.items[0].reason, "DatabaseGone");
        CHECK_INT(host_report_state(&host, "/proc", &room, 0), 0);
        CHECK_INT(host.state.count, 0);
        host_clear(&host);
}

int main(void)
{
        test_a_disk_that_is_full_for_a_while();
        test_a_repetition_is_written_as_soon_as_a_new_event();
        test_the_state_directory();
        return check_report();
}
