/* SPDX-License-Identifier: MIT */
/* Reports the view of a turn to the user: a phase, a reason, and a sentence that says what happened, what
 * ublkd does next, and when. */
#include "ublkd/reconcile/view/device_report.h"
#include "ublkd/reconcile/view/spec_features.h"

#include "ublkd/base/sentence.h"
#include "ublkd/driver/device_route.h"
#include "ublkd/store/device_record.h"
#include "ublkd/values/json_time.h"
#include "ublkd/values/quantity.h"

#include <stdio.h>
#include <string.h>

/* What the status says in two words. */
struct reported {
        enum device_phase phase;
        enum condition_reason reason;
};

static bool is_serving(const struct report_view *view)
{
        return view->turn->facts.kernel == KERNEL_LIVE && view->turn->facts.worker == PLAN_WORKER_SERVING;
}

static bool is_manual(const struct device_record *record)
{
        return record->spec && record->spec->options.recovery.trigger == TRIGGER_MANUAL;
}

/* Return whether the last worker has exited or is exiting because ublkd asked it to, and nothing has failed
 * since. (The disk may be down before the worker has exited.) */
static bool is_handed_over(const struct report_view *view)
{
        enum condition_reason reason = view->note->reason;

        return reason == REASON_NONE ? view->attempt->retired : reason_info(reason)->handover;
}

static bool is_gone(const struct report_view *view)
{
        return view->turn->facts.kernel == KERNEL_ABSENT && view->turn->facts.worker == PLAN_WORKER_NONE;
}

/* Whether the spec says so or a client has asked for it: there is no disk, and none is wanted. */
static struct reported without_disk(const struct device_record *record)
{
        return (struct reported){
                PHASE_DISABLED, record->spec->options.enabled ? REASON_STOPPED : REASON_DISABLED};
}

static struct reported choose_absent(const struct report_view *view, const struct device_record *record)
{
        if (record->deleting)
                return (struct reported){PHASE_STOPPING, REASON_DELETING};
        if (!device_record_enabled(record))
                return is_gone(view) ? without_disk(record)
                                     : (struct reported){PHASE_STOPPING, REASON_DISABLING};
        if (spec_unsupported(record->spec, view->features))
                return (struct reported){PHASE_FAILED, REASON_NOT_SUPPORTED};
        if (spec_not_allowed(record->spec, view->allows_tests))
                return (struct reported){PHASE_FAILED, REASON_TEST_TARGET_NOT_ALLOWED};
        /* The worker of the last spec exits; there is no disk to remove. */
        return view->turn->facts.kernel == KERNEL_ABSENT
                       ? (struct reported){PHASE_STARTING, REASON_STARTING}
                       : (struct reported){PHASE_STOPPING, REASON_REPLACING};
}

/* A missing driver has no disks; one that does not answer may have. */
static bool may_have_disks(const struct problem_list *problems)
{
        return problems->count == 0 || problems->items[0].error != ENOENT;
}

/* The facts of the disk are from the time with a driver; before, there was no disk. */
static struct reported choose_without_driver(
        const struct report_view *view, const struct device_record *record)
{
        if (view->unseen && may_have_disks(view->host_problems))
                return (struct reported){PHASE_UNKNOWN, REASON_HOST_NOT_READY};
        if (record->deleting)
                return (struct reported){PHASE_STOPPING, REASON_HOST_NOT_READY};
        if (!device_record_enabled(record) && is_gone(view) && !view->worker)
                return without_disk(record);
        return (struct reported){
                device_record_enabled(record) ? PHASE_PENDING : PHASE_STOPPING, REASON_HOST_NOT_READY};
}

static bool grows(const struct report_view *view)
{
        return view->turn->facts.want == WANT_EXTENDED || view->turn->facts.want == WANT_GROWN;
}

/* Return why the disk could not grow to the size wanted now; a refusal of another size does not count. */
static const char *growth_refusal(const struct report_view *view)
{
        return view->growth_refusal ? view->growth_refusal : view->note->sentence;
}

static enum condition_reason live_reason(const struct report_view *view)
{
        if (view->turn->facts.want == WANT_RENEWED)
                return REASON_RESTARTING;
        if (!grows(view) && view->restart_refusal)
                return REASON_CANNOT_RESTART;
        return !grows(view) ? REASON_LIVE : growth_refusal(view) ? REASON_CANNOT_GROW : REASON_GROWING;
}

/* Recovery is manual: wait for POST …/recover. A live disk that has lost its worker is DOWN, unless it cannot
 * be recovered: the driver is about to remove that. */
static struct reported choose_held(const struct report_view *view, bool down)
{
        bool recoverable = !ublk_ctl_missing(ublk_ctl_flags(KERNEL_RECOVERY_QUEUE), view->turn->kernel.flags);
        bool leaving = view->turn->facts.worker == PLAN_WORKER_LEAVING && !recoverable;

        if (view->turn->facts.kernel == KERNEL_LIVE
                && (view->turn->facts.worker == PLAN_WORKER_NONE || leaving))
                return (struct reported){PHASE_STOPPING, REASON_WAITS_FOR_RECOVER};
        return (struct reported){down ? PHASE_QUIESCED : PHASE_FAILED, REASON_WAITS_FOR_RECOVER};
}

/* Return whether a step to create the disk failed and has not succeeded since. */
static bool cannot_be_made(const struct report_view *view)
{
        static const bool makes[_ACTION_MAX] = {
                [ACTION_ADD_DEV] = true, [ACTION_SET_PARAMS] = true, [ACTION_START_DEV] = true};

        return view->attempt->error < 0 && makes[view->attempt->failed];
}

/* Return whether a step failed and has not succeeded since. A disk that cannot be created does not always
 * wait for the next try. */
static bool is_in_trouble(const struct report_view *view, bool down)
{
        if (view->note->reason == REASON_NONE || is_handed_over(view)
                || attempt_waits_for_release(view->attempt))
                return false;
        return view->next_try != UINT64_MAX || view->attempt->deaths > 1 || (!down && cannot_be_made(view));
}

static struct reported choose(const struct report_view *view, const struct device_record *record)
{
        bool down =
                view->turn->facts.kernel == KERNEL_DOWN
                || (view->turn->facts.kernel == KERNEL_LIVE && view->turn->facts.worker != PLAN_WORKER_READY);

        if (!record->spec && !record->deleting)
                return (struct reported){PHASE_FAILED, REASON_QUARANTINED};
        if (!view->has_control)
                return choose_without_driver(view, record);
        if (view->unseen)
                return (struct reported){PHASE_UNKNOWN,
                        view->note->reason != REASON_NONE ? view->note->reason : REASON_NOT_YET_KNOWN};
        if (view->turn->facts.want == WANT_ABSENT)
                return choose_absent(view, record);
        if (is_serving(view))
                return (struct reported){PHASE_LIVE, live_reason(view)};
        if (view->turn->facts.want == WANT_HELD)
                return choose_held(view, down);
        if (view->backing_changed && view->note->reason != REASON_NONE) /* also during the next try */
                return (struct reported){PHASE_FAILED, view->note->reason};
        if (is_in_trouble(view, down))
                return (struct reported){PHASE_BACKOFF, view->note->reason};
        if (view->turn->facts.want == WANT_GIVEN_UP)
                return (struct reported){PHASE_STOPPING, REASON_GAVE_UP};
        return down ? (struct reported){PHASE_RECOVERING,
                              is_handed_over(view) ? REASON_RESTARTING : REASON_RECOVERING}
                    : (struct reported){PHASE_STARTING, REASON_STARTING};
}

/* Return the time in CLOCK_REALTIME microseconds, rounded to milliseconds; 0: no time is set. */
static uint64_t next_try_time(const struct report_view *view)
{
        if (view->next_try == UINT64_MAX || view->next_try <= view->now)
                return 0;
        return (view->wall_msec + (view->next_try - view->now) / 1000) * 1000;
}

static void format_next_try(uint64_t usec, char text[static 96])
{
        char at[TIME_TEXT_SIZE];

        text[0] = '\0';
        if (usec > 0 && time_format(usec, at))
                snprintf(text, 96, " The next attempt is at %s.", at);
}

static const char *host_sentence(const struct report_view *view)
{
        const struct problem_list *problems = view->host_problems;

        return problems->count > 0 ? problems->items[0].detail : "The ublk driver does not answer.";
}

static const char *note_or(const struct report_view *view, const char *fallback)
{
        return view->note->sentence ? view->note->sentence : fallback;
}

static unsigned failed_attempts(const struct attempt *attempt)
{
        unsigned steps = attempt->tries > attempt->blind ? attempt->tries : attempt->blind;

        return attempt->deaths > steps ? attempt->deaths : steps;
}

static int explain_backoff(
        const struct report_view *view, enum condition_reason reason, struct device_status *status)
{
        char when[96];
        int r;

        status->next_try_at = next_try_time(view);
        status->attempts = failed_attempts(view->attempt);
        format_next_try(status->next_try_at, when);
        r = device_status_set_cause(status, "%s",
                note_or(view, view->attempt->deaths > 1 ? "The worker died." : "The last step failed."));
        if (r < 0)
                return r;
        if (view->attempt->deaths > 1)
                return device_status_explain(status, reason, "%s Attempt %u failed.%s", status->cause,
                        view->attempt->deaths, when[0] ? when : " Another attempt is under way.");
        return device_status_explain(
                status, reason, "%s%s", status->cause, when[0] ? when : " Another attempt is under way.");
}

/* Prefer the reason that keeps the kernel from removing the disk over the reason for the removal. */
static enum condition_reason absent_reason(const struct report_view *view, enum condition_reason reason)
{
        return reason_info(view->note->reason)->obstacle ? view->note->reason : reason;
}

static int explain_absent(const struct report_view *view, const struct device_record *record,
        enum condition_reason reason, struct device_status *status)
{
        /* clang-format off */
        static const struct {
                enum condition_reason reason;
                const char *sentence;
        } sentences[] = {
                {REASON_DELETING, "ublkd is removing the disk, and then the record."},
                {REASON_DISABLED, "The device is disabled: ublkd keeps the record, and there is no disk until the "
                                  "device is enabled."},
                {REASON_STOPPED, "The device is stopped: ublkd creates its disk at the next boot, or when a client "
                                 "asks for it ('ublkctl start', POST /devices/NAME/start)."},
                {REASON_DISABLING, "ublkd is removing the disk; it keeps the record."},
                {REASON_REPLACING, "ublkd is removing the old disk; then it creates one from the new spec."},
        };
        /* clang-format on */
        for (size_t i = 0; i < ARRAY_SIZE(sentences); i++)
                if (reason == sentences[i].reason)
                        return device_status_explain(status, absent_reason(view, reason), "%s%s%s",
                                sentences[i].sentence, view->note->sentence ? " " : "", note_or(view, ""));
        return device_status_explain(status, reason, "%s",
                reason == REASON_NOT_SUPPORTED ? spec_unsupported(record->spec, view->features)
                                               : spec_not_allowed(record->spec, view->allows_tests));
}

static int explain_live(const struct report_view *view, const struct device_record *record,
        enum condition_reason reason, struct device_status *status)
{
        const char *refusal = grows(view) ? growth_refusal(view) : NULL;
        char size[SIZE_TEXT_MAX], wanted[SIZE_TEXT_MAX];
        int r;

        format_size(view->turn->geometry.size, size);
        format_size(view->turn->geometry.wanted, wanted);
        if (view->turn->facts.want == WANT_RENEWED)
                return device_status_explain(status, reason,
                        "Serving /dev/ublkb%d; its worker finishes the requests in flight, and another "
                        "worker replaces it.",
                        record->number);
        if (refusal) {
                r = device_status_set_cause(status, "The disk cannot grow from %s to %s: %s%s", size, wanted,
                        refusal, full_stop(refusal));
                return r < 0 ? r
                             : device_status_explain(status, reason,
                                       "Serving /dev/ublkb%d as before, with %s; it cannot grow to %s: %s%s "
                                       "ublkd retries until it can.",
                                       record->number, size, wanted, refusal, full_stop(refusal));
        }
        if (grows(view))
                return device_status_explain(
                        status, reason, "Serving /dev/ublkb%d, which grows to %s.", record->number, wanted);
        refusal = view->restart_refusal;
        if (refusal) {
                r = device_status_set_cause(status, "%s%s", refusal, full_stop(refusal));
                return r < 0 ? r
                             : device_status_explain(status, reason,
                                       "Serving /dev/ublkb%d as before; the restart was refused, because the "
                                       "next worker could not take over: %s Fix this, and ask for the "
                                       "restart again.",
                                       record->number, status->cause);
        }
        return device_status_explain(status, reason, "Serving /dev/ublkb%d.", record->number);
}

/* Name the disk; a device without a disk so far may have no number. */
static const char *disk_text(const struct device_record *record, char text[static 32])
{
        if (record->number < 0)
                return "the disk";
        snprintf(text, 32, "/dev/ublkb%d", record->number);
        return text;
}

/* Explain the status while the kernel does not answer about any disk. */
static int explain_host(const struct report_view *view, const struct device_record *record,
        enum condition_reason reason, struct device_status *status)
{
        const char *host = host_sentence(view);
        char disk[32];

        if (status->phase == PHASE_UNKNOWN)
                return device_status_explain(status, reason,
                        "%s%s So it is not known whether %s exists; ublkd asks the driver again every few "
                        "seconds.",
                        host, full_stop(host), disk_text(record, disk));
        if (!record->deleting)
                return device_status_explain(
                        status, reason, "%s%s ublkd tries again every few seconds.", host, full_stop(host));
        return device_status_explain(status, reason,
                "The removal waits until the driver can report that %s is gone. %s%s ublkd tries again every "
                "few seconds.",
                disk_text(record, disk), host, full_stop(host));
}

static int explain_starting(
        const struct report_view *view, enum condition_reason reason, struct device_status *status)
{
        static const char *const awaited[_PLAN_WORKER_MAX] = {
                [PLAN_WORKER_STARTING] = "its worker has opened the backing store",
                [PLAN_WORKER_FETCHING] = "its worker has begun to serve",
                [PLAN_WORKER_LEAVING] = "the last worker has exited",
        };
        const char *until = awaited[view->turn->facts.worker];

        if (view->action == ACTION_WAIT || view->action == ACTION_NOTHING)
                return device_status_explain(status, reason,
                        "ublkd is creating the disk, and waits until %s.",
                        until ? until : "the last step has ended");
        return device_status_explain(status, reason, "ublkd is creating the disk; the next step is to %s.",
                plan_action_to_string(view->action));
}

static int explain_recovering(const struct report_view *view, const struct device_record *record,
        enum condition_reason reason, struct device_status *status)
{
        const char *cause =
                is_handed_over(view) ? "ublkd asked the worker to exit." : "No worker serves the disk.";

        return device_status_explain(status, reason,
                "%s A new worker is taking over the queues of /dev/ublkb%d.", note_or(view, cause),
                record->number);
}

static int explain_quiesced(const struct report_view *view, const struct device_record *record,
        enum condition_reason reason, struct device_status *status)
{
        return device_status_explain(status, reason,
                "%s The disk waits for 'ublkctl recover %s' (POST /devices/%s/recover), because "
                "recovery.trigger is \"manual\".",
                note_or(view, "No worker serves the disk."), record->name, record->name);
}

static int explain_failed(const struct report_view *view, const struct device_record *record,
        enum condition_reason reason, struct device_status *status)
{
        if (!record->spec)
                return device_record_explain_quarantine(record, status);
        if (view->backing_changed)
                return explain_backoff(view, reason, status);
        if (view->turn->facts.want == WANT_HELD)
                return device_status_explain(status, reason,
                        "%s There is no disk left to recover; 'ublkctl recover %s' (POST "
                        "/devices/%s/recover) creates it again.",
                        note_or(view, "The worker died."), record->name, record->name);
        return explain_absent(view, record, reason, status);
}

static int explain_removal(const struct report_view *view, const struct device_record *record,
        enum condition_reason reason, struct device_status *status)
{
        if (view->turn->facts.want == WANT_HELD)
                return device_status_explain(status, reason,
                        "%s The kernel removes the disk, which cannot be recovered; then 'ublkctl "
                        "recover %s' (POST /devices/%s/recover) creates it again.",
                        note_or(view, "The worker died."), record->name, record->name);
        if (view->turn->facts.want == WANT_GIVEN_UP)
                return device_status_explain(status, reason,
                        "I/O has waited for recovery.giveUpAfter: ublkd fails it now, and removes "
                        "the disk; %s.",
                        is_manual(record) ? "'ublkctl recover' creates it again"
                                          : "then it creates the disk again");
        return explain_absent(view, record, reason, status);
}

static int explain_unknown(const struct report_view *view, const struct device_record *record,
        enum condition_reason reason, struct device_status *status)
{
        char disk[32];

        return device_status_explain(status, reason,
                "%s%sIt is not known yet whether %s exists; ublkd asks the kernel again.", note_or(view, ""),
                view->note->sentence ? " " : "", disk_text(record, disk));
}

static int explain(const struct report_view *view, const struct device_record *record,
        const struct reported *reported, struct device_status *status)
{
        enum condition_reason reason = reported->reason;

        if (reason == REASON_HOST_NOT_READY)
                return explain_host(view, record, reason, status);
        switch (reported->phase) {
        case PHASE_STARTING:
                return explain_starting(view, reason, status);
        case PHASE_LIVE:
                return explain_live(view, record, reason, status);
        case PHASE_RECOVERING:
                return explain_recovering(view, record, reason, status);
        case PHASE_BACKOFF:
                return explain_backoff(view, reason, status);
        case PHASE_QUIESCED:
                return explain_quiesced(view, record, reason, status);
        case PHASE_FAILED:
                return explain_failed(view, record, reason, status);
        case PHASE_STOPPING:
        case PHASE_DISABLED:
                return explain_removal(view, record, reason, status);
        case PHASE_UNKNOWN:
                return explain_unknown(view, record, reason, status);
        case PHASE_PENDING: /* above */
        case _PHASE_MAX:
                break;
        }
        return -EINVAL;
}

/* The record may be quarantined: without a spec. */
static void fill_route(
        const struct report_view *view, const struct device_record *record, struct device_status *status)
{
        struct data_route route = ublk_ctl_route(view->turn->kernel.flags);
        enum data_path wanted = record->spec ? (enum data_path)record->spec->options.data_path : route.path;

        status->data_path = data_path_to_string(route.path);
        status->data_path_reason =
                device_route_reason(wanted, view->worker ? view->worker->fastest : DATA_PATH_AUTO, &route);
        status->batch = route.batch;
}

static void fill(const struct report_view *view, const struct device_record *record, enum device_phase phase,
        struct device_status *status)
{
        bool disk = view->turn->facts.kernel == KERNEL_LIVE || view->turn->facts.kernel == KERNEL_DOWN;

        *status = (struct device_status){
                .phase = phase,
                .observed_generation = record->generation,
                .observed_restart = record->restart,
                .observed_asked = record->asked,
                .converged = is_serving(view) && view->turn->facts.want == WANT_PRESENT && !view->awaits_udev
                             && !view->awaits_limits,
                .number = record->number,
                .disk = disk,
                .size = disk ? view->turn->geometry.size : 0,
                .worker.restarts = view->history->restarts,
                .recoveries = {.count = view->history->recoveries,
                               .last_ms = view->history->last_recovery_ms},
                .kernel_flags = view->turn->facts.kernel == KERNEL_ABSENT ? 0 : view->turn->kernel.flags,
        };
        if (disk)
                fill_route(view, record, status);
        if (!view->worker)
                return;
        status->worker.pid = view->worker->pid;
        status->worker.started_at = view->worker->started_at;
        snprintf(status->worker.version, sizeof(status->worker.version), "%s", view->worker->version);
}

/* Return the reason of what the sentences quote. */
static enum condition_reason quoted_reason(const struct report_view *view, enum condition_reason reported)
{
        if (reported == REASON_HOST_NOT_READY)
                return reported;
        if (reported == REASON_CANNOT_GROW && view->growth_refusal)
                return view->growth_reason;
        if (reported == REASON_CANNOT_RESTART)
                return view->restart_reason;
        return view->note->of_owner ? REASON_NONE : view->note->reason;
}

int device_report(
        const struct report_view *view, const struct device_record *record, struct device_status *ret)
{
        struct reported reported = choose(view, record);

        fill(view, record, reported.phase, ret);
        ret->quoted = quoted_reason(view, reported.reason);
        return explain(view, record, &reported, ret);
}
