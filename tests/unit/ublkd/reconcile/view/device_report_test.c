/* SPDX-License-Identifier: MIT */
/* device_report: "why is it not Live?" has an answer in each phase. The message has whole sentences: what
 * happened, and what ublkd does next or the user must do. */
#include "ublkd/reconcile/view/device_report.h"

#include "tests/unit/check.h"
#include "tests/unit/spec_of.h"

#include <errno.h>
#include <stdlib.h>

enum { SECOND = 1000 * 1000 };

static const struct row {
        const char *what;
        enum device_phase phase;
        enum condition_reason reason;
        const char *words[3]; /* in the message */
        struct plan_facts facts;
        bool without_control, deleting, disabled, stopped, quarantined;
        bool unseen, numberless;
        enum condition_reason note_reason;
        const char *note;
        unsigned deaths, next_try; /* seconds from now; 0: none */
        const char *growth_refusal, *restart_refusal;
        bool backing_changed;
        enum plan_action action;
        uint64_t size, wanted; /* of the disk: shown with units */
} rows[] = {
        {.what = "no driver",
         .phase = PHASE_PENDING,
         .reason = REASON_HOST_NOT_READY,
         .words = {"The driver is not loaded", "tries again every few seconds"},
         .without_control = true},
        {.what = "a driver that cannot be asked",
         .phase = PHASE_UNKNOWN,
         .reason = REASON_HOST_NOT_READY,
         .words = {"The driver is not loaded", "not known whether /dev/ublkb3 exists"},
         .without_control = true,
         .unseen = true},
        {.what = "not looked at yet",
         .phase = PHASE_UNKNOWN,
         .reason = REASON_NOT_YET_KNOWN,
         .words = {"not known yet whether /dev/ublkb3 exists"},
         .unseen = true},
        {.what = "without a number, and not looked at yet",
         .phase = PHASE_UNKNOWN,
         .reason = REASON_NOT_YET_KNOWN,
         .words = {"not known yet whether the disk exists"},
         .unseen = true,
         .numberless = true},
        {.what = "without a number, and the driver cannot be asked",
         .phase = PHASE_UNKNOWN,
         .reason = REASON_HOST_NOT_READY,
         .words = {"not known whether the disk exists"},
         .without_control = true,
         .unseen = true,
         .numberless = true},
        {.what = "the kernel does not answer since ublkd started",
         .phase = PHASE_UNKNOWN,
         .reason = REASON_CONTROL_PLANE,
         .words = {"kernel about /dev/ublkb3 failed", "not known yet whether /dev/ublkb3 exists"},
         .unseen = true,
         .note_reason = REASON_CONTROL_PLANE,
         .note = "Asking the kernel about /dev/ublkb3 failed: I/O error.",
         .next_try = 1},
        {.what = "being removed without a driver",
         .phase = PHASE_STOPPING,
         .reason = REASON_HOST_NOT_READY,
         .words = {"The removal waits", "report that /dev/ublkb3 is gone", "The driver is not loaded"},
         .without_control = true,
         .deleting = true},
        {.what = "disabled without a driver",
         .phase = PHASE_DISABLED,
         .reason = REASON_DISABLED,
         .words = {"until the device is enabled"},
         .without_control = true,
         .disabled = true},
        {.what = "quarantined without a driver",
         .phase = PHASE_FAILED,
         .reason = REASON_QUARANTINED,
         .words = {"its spec is not JSON"},
         .without_control = true,
         .quarantined = true},
        {.what = "its worker was asked to exit",
         .phase = PHASE_RECOVERING,
         .reason = REASON_RESTARTING,
         .words = {"has exited", "A new worker is taking over"},
         .facts = {.kernel = KERNEL_DOWN},
         .note_reason = REASON_WORKER_RETIRED,
         .note = "Worker 12 was asked to exit, and has exited.",
         .next_try = 1},
        {.what = "being created",
         .phase = PHASE_STARTING,
         .reason = REASON_STARTING,
         .words = {"creating the disk", "the next step is to start a worker."},
         .facts = {.want = WANT_PRESENT},
         .action = ACTION_SPAWN},
        {.what = "being created, while its worker opens the store",
         .phase = PHASE_STARTING,
         .reason = REASON_STARTING,
         .words = {"creating the disk, and waits until its worker has opened the backing store."},
         .facts = {.want = WANT_PRESENT, .worker = PLAN_WORKER_STARTING},
         .action = ACTION_WAIT},
        {.what = "being created, while something else is under way",
         .phase = PHASE_STARTING,
         .reason = REASON_STARTING,
         .words = {"creating the disk, and waits until the last step has ended."},
         .facts = {.want = WANT_PRESENT},
         .action = ACTION_WAIT},
        {.what = "serving",
         .phase = PHASE_LIVE,
         .reason = REASON_LIVE,
         .words = {"Serving /dev/ublkb3"},
         .facts = {.kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING}},
        {.what = "its worker died",
         .phase = PHASE_RECOVERING,
         .reason = REASON_RECOVERING,
         .words = {"killed by signal 9", "A new worker is taking over"},
         .facts = {.kernel = KERNEL_DOWN},
         .note_reason = REASON_WORKER_DIED,
         .note = "The worker was killed by signal 9."},
        {.what = "no backing file",
         .phase = PHASE_BACKOFF,
         .reason = REASON_BACKING_FILE_MISSING,
         .words = {"There is no file /x", "Attempt 3 failed",
                        "The next attempt is at 1970-01-01T00:17:10"},
         .facts = {.want = WANT_PRESENT},
         .note_reason = REASON_BACKING_FILE_MISSING,
         .note = "There is no file /x.",
         .deaths = 3,
         .next_try = 30},
        {.what = "the last try died, the next one is under way",
         .phase = PHASE_BACKOFF,
         .reason = REASON_BACKING_FILE_MISSING,
         .words = {"There is no file /x", "Attempt 2 failed. Another attempt is under way"},
         .facts = {.want = WANT_PRESENT, .worker = PLAN_WORKER_STARTING},
         .note_reason = REASON_BACKING_FILE_MISSING,
         .note = "There is no file /x.",
         .deaths = 2},
        {.what = "the kernel refuses a command",
         .phase = PHASE_BACKOFF,
         .reason = REASON_CONTROL_PLANE,
         .words = {"failed: Invalid argument", "The next attempt is at 1970-01-01T00:16:41"},
         .facts = {.want = WANT_PRESENT, .worker = PLAN_WORKER_PARAMS},
         .note_reason = REASON_CONTROL_PLANE,
         .note = "ADD_DEV failed: Invalid argument.",
         .next_try = 1},
        {.what = "manual, with a disk that waits",
         .phase = PHASE_QUIESCED,
         .reason = REASON_WAITS_FOR_RECOVER,
         .words = {"killed by signal 9", "'ublkctl recover data' (POST /devices/data/recover)",
                        "recovery.trigger"},
         .facts = {.want = WANT_HELD, .kernel = KERNEL_DOWN},
         .note_reason = REASON_WORKER_DIED,
         .note = "The worker was killed by signal 9."},
        {.what = "manual, with nothing left to recover",
         .phase = PHASE_FAILED,
         .reason = REASON_WAITS_FOR_RECOVER,
         .words = {"no disk left to recover",
                        "'ublkctl recover data' (POST /devices/data/recover) creates it again"},
         .facts = {.want = WANT_HELD}},
        {.what = "a record that cannot be used",
         .phase = PHASE_FAILED,
         .reason = REASON_QUARANTINED,
         .words = {"cannot be used"},
         .quarantined = true},
        {.what = "I/O has waited too long",
         .phase = PHASE_STOPPING,
         .reason = REASON_GAVE_UP,
         .words = {"recovery.giveUpAfter", "removes the disk; then it creates the disk again"},
         .facts = {.want = WANT_GIVEN_UP, .kernel = KERNEL_DOWN}},
        {.what = "deleted",
         .phase = PHASE_STOPPING,
         .reason = REASON_DELETING,
         .words = {"removing the disk, and then the record"},
         .facts = {.want = WANT_ABSENT, .kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING},
         .deleting = true},
        {.what = "deleted, and STOP_DEV hangs",
         .phase = PHASE_STOPPING,
         .reason = REASON_CONTROL_PLANE_HANGS,
         .words = {"removing the disk", "has not answered"},
         .facts = {.want = WANT_ABSENT, .kernel = KERNEL_LIVE},
         .deleting = true,
         .note_reason = REASON_CONTROL_PLANE_HANGS,
         .note = "The kernel has not answered in time."},
        {.what = "on its way to be disabled",
         .phase = PHASE_STOPPING,
         .reason = REASON_DISABLING,
         .words = {"removing the disk", "keeps the record"},
         .facts = {.want = WANT_ABSENT, .kernel = KERNEL_LIVE},
         .disabled = true},
        {.what = "disabled",
         .phase = PHASE_DISABLED,
         .reason = REASON_DISABLED,
         .words = {"until the device is enabled"},
         .facts = {.want = WANT_ABSENT},
         .disabled = true},
        {.what = "stopped",
         .phase = PHASE_DISABLED,
         .reason = REASON_STOPPED,
         .words = {"at the next boot"},
         .facts = {.want = WANT_ABSENT},
         .stopped = true},
        {.what = "replaced by another spec",
         .phase = PHASE_STOPPING,
         .reason = REASON_REPLACING,
         .words = {"removing the old disk", "creates one from the new spec"},
         .facts = {.want = WANT_ABSENT, .kernel = KERNEL_LIVE}},
        {.what = "grows",
         .phase = PHASE_LIVE,
         .reason = REASON_GROWING,
         .words = {"which grows to 1GiB"},
         .wanted = 1 << 30,
         .facts = {.want = WANT_GROWN, .kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING}},
        {.what = "cannot grow",
         .phase = PHASE_LIVE,
         .reason = REASON_CANNOT_GROW,
         .words = {"with 32MiB; it cannot grow to 1GiB", "no room"},
         .size = 32 << 20,
         .wanted = 1 << 30,
         .facts = {.want = WANT_EXTENDED, .kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING},
         .growth_refusal = "There is no room."},
        {.what = "was not restarted",
         .phase = PHASE_LIVE,
         .reason = REASON_CANNOT_RESTART,
         .words = {"restart was refused", "no file /x"},
         .facts = {.kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING},
         .restart_refusal = "There is no file /x."},
        {.what = "its store was refused",
         .phase = PHASE_FAILED,
         .reason = REASON_BACKING_CHANGED,
         .words = {"another store"},
         .facts = {.kernel = KERNEL_DOWN},
         .note_reason = REASON_BACKING_CHANGED,
         .note = "At the path is another store.",
         .backing_changed = true},
};

enum { NOW = 1000 * SECOND, WALL_MSEC = 1000 * 1000 };

static bool is_text_of_sentences(const char *text)
{
        size_t length = strlen(text);

        return length > 10 && text[length - 1] == '.' && !strstr(text, "..") && !strstr(text, "  ")
               && !strchr(text, '\n') && text[0] != ' ';
}

static void check_status(const struct row *row, const struct device_status *status)
{
        unsigned before = check_failures;

        CHECK_STR(device_phase_to_string(status->phase), device_phase_to_string(row->phase));
        CHECK_INT(status->reason, row->reason);
        CHECK(is_text_of_sentences(status->message));
        CHECK_INT(status->next_try_at > 0, row->next_try && status->cause);
        CHECK_INT(status->attempts, status->cause ? row->deaths : 0);
        if (status->phase == PHASE_BACKOFF)
                CHECK_STR(status->cause, row->note);
        for (size_t i = 0; i < ARRAY_SIZE(row->words) && row->words[i]; i++)
                CHECK(strstr(status->message, row->words[i]));
        if (check_failures > before)
                fprintf(stderr, "%s: %s\n", row->what, status->message);
}

static void check_row(const struct row *row, struct device_spec *spec)
{
        struct problem problem = {.error = ENODEV, .detail = (char *)"The driver is not loaded."};
        const struct problem_list problems = {.items = &problem, .count = 1};
        const struct turn_view turn = {
                .facts = row->facts, .geometry = {.size = row->size, .wanted = row->wanted}
        };
        const struct attempt attempt = {.deaths = row->deaths};
        const struct failure_note note = {.reason = row->note_reason, .sentence = (char *)row->note};
        const struct region_history history = {};
        const struct report_view view = {
                .turn = &turn,
                .attempt = &attempt,
                .note = &note,
                .history = &history,
                .host_problems = &problems,
                .action = row->action,
                .growth_refusal = row->growth_refusal,
                .restart_refusal = row->restart_refusal,
                .features = UINT64_MAX,
                .has_control = !row->without_control,
                .unseen = row->unseen,
                .backing_changed = row->backing_changed,
                .next_try = row->next_try ? NOW + (uint64_t)row->next_try * SECOND : UINT64_MAX,
                .now = NOW,
                .wall_msec = WALL_MSEC,
        };
        const struct device_record record = {
                .name = (char *)"data",
                .number = row->numberless ? -1 : 3,
                .deleting = row->deleting,
                .stopped = row->stopped,
                .spec = row->quarantined ? NULL : spec,
                .quarantine = row->quarantined ? (char *)"its spec is not JSON" : NULL,
        };
        struct device_status status;

        spec->options.enabled = !row->disabled;
        CHECK_INT(device_report(&view, &record, &status), 0);
        check_status(row, &status);
        device_status_clear(&status);
}

/* The record of a test, on a machine that is not for tests. */
static void refuses_a_target_for_tests(void)
{
        static const struct row refused = {
                .what = "a target for tests",
                .phase = PHASE_FAILED,
                .reason = REASON_TEST_TARGET_NOT_ALLOWED,
                .words = {"AllowFaultTarget=no", "remove it"},
                .facts = {.want = WANT_ABSENT}
        };
        struct device_spec *spec =
                spec_of("{\"name\":\"data\",\"target\":{\"type\":\"fault\",\"child\":{\"type\":\"null\"}},"
                        "\"size\":\"1MiB\"}");

        if (spec)
                check_row(&refused, spec);
        device_spec_free(spec);
}

/* The worker and the disk, as the kernel and the worker state them. */
static void shows_what_serves(struct device_spec *spec)
{
        const struct turn_view turn = {
                .facts = {.want = WANT_PRESENT, .kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING},
                .geometry = {.size = 4096}
        };
        const struct report_worker worker = {.pid = 12, .started_at = 7, .version = "1.2"};
        const struct region_history history = {.restarts = 2, .recoveries = 1, .last_recovery_ms = 3.5};
        const struct report_view view = {
                .turn = &turn,
                .attempt = &(const struct attempt){},
                .note = &(const struct failure_note){},
                .history = &history,
                .host_problems = &(const struct problem_list){},
                .worker = &worker,
                .has_control = true,
                .next_try = UINT64_MAX,
        };
        const struct device_record record = {
                .name = (char *)"data", .number = 3, .generation = 5, .spec = spec};
        struct report_view new_disk = view, unlimited = view;
        struct device_status status;

        new_disk.awaits_udev = true;
        CHECK_INT(device_report(&new_disk, &record, &status), 0);
        CHECK(status.phase == PHASE_LIVE && !status.converged);
        device_status_clear(&status);
        unlimited.awaits_limits = true;
        CHECK_INT(device_report(&unlimited, &record, &status), 0);
        CHECK(status.phase == PHASE_LIVE && !status.converged);
        device_status_clear(&status);
        CHECK_INT(device_report(&view, &record, &status), 0);
        CHECK(status.converged);
        CHECK(status.disk);
        CHECK_INT(status.size, 4096);
        CHECK_INT(status.observed_generation, 5);
        CHECK_INT(status.worker.pid, 12);
        CHECK_INT(status.worker.restarts, 2);
        CHECK_STR(status.worker.version, "1.2");
        CHECK_INT(status.recoveries.count, 1);
        device_status_clear(&status);
}

int main(void)
{
        struct device_spec *spec =
                spec_of("{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}");
        bool seen[_PHASE_MAX] = {};

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                check_row(&rows[i], spec);
                seen[rows[i].phase] = true;
        }
        for (int i = 0; i < _PHASE_MAX; i++)
                if (!CHECK(seen[i]))
                        fprintf(stderr, "no row for %s\n", device_phase_to_string((enum device_phase)i));
        refuses_a_target_for_tests();
        shows_what_serves(spec);
        device_spec_free(spec);
        return check_report();
}
