/* SPDX-License-Identifier: MIT */
/* Follows the action of a device. What a worker reports of it counts as what it says of itself: numbers within bounds, and
 * one event for each action that a client has started.
 *
 * On the way of a recovery nothing here runs: an action that has ended with its worker is stored when the disk is served
 * again, or when ublkd waits. */
#include "ublkd/reconcile/worker/device_action.h"
#include "ublkd/proto/region_action.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"
#include "ublkd/reconcile/view/action_outcome.h"
#include "ublkd/store/store_actions.h"

#include "ublkd/base/clock.h"
#include "ublkd/values/json_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
        LOOK_USEC = 1000 * 1000,       /* how often it looks how far the action is */
        BEGIN_USEC = 10 * 1000 * 1000, /* within which a worker has begun it */
        RETRY_USEC = 30 * 1000 * 1000, /* after a failure of the database */
        TIMER_ACCURACY_USEC = 100 * 1000,
};

_Static_assert((int)TARGET_RANGES_MAX == (int)REGION_ACTION_RANGES, "findings have room for all ranges");

/* ---- when to look again ---- */

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        device_wake(userdata);
        return 0;
}

/* On failure the next turn looks. */
static void look_at(struct managed_device *device, uint64_t at)
{
        struct device_acting *acting = &device->action;

        if (!acting->timer) {
                (void)sd_event_add_time(device->env->config.event, &acting->timer, CLOCK_MONOTONIC, at,
                        TIMER_ACCURACY_USEC, on_timer, device);
                return;
        }
        (void)sd_event_source_set_time(acting->timer, at);
        (void)sd_event_source_set_enabled(acting->timer, SD_EVENT_ONESHOT);
}

static void look_no_more(struct managed_device *device)
{
        if (device->action.timer)
                (void)sd_event_source_set_enabled(device->action.timer, SD_EVENT_OFF);
        device->action.asked = 0;
        device->action.retry_at = 0;
}

/* Take account of what a write came to. The first failure makes an event, and others are tried after a while. */
static void note_write(struct managed_device *device, int result)
{
        struct device_acting *acting = &device->action;

        if (result >= 0 || result == -ENOENT) {
                acting->retry_at = 0;
                return;
        }
        if (acting->retry_at == 0)
                device_emit(device, EVENT_WARNING, REASON_NOT_STORED,
                        "What became of an action cannot be stored: %s; ublkd retries every %d s.",
                        strerror(-result), RETRY_USEC / 1000000);
        acting->retry_at = monotonic_now() + RETRY_USEC;
        look_at(device, acting->retry_at);
}

/* ---- its end ---- */

static const struct target_verb *verb_of(
        const struct device_record *record, const struct device_action *action)
{
        int verb = record->spec ? target_desc_verb(record->spec->target, action->verb) : -1;

        return verb < 0 ? NULL : &record->spec->target->verbs[verb];
}

/* NULL: there is none, or ENOMEM: then the end is stored without. */
static char *result_of(const struct device_record *record, const struct device_action *action,
        const struct action_report *report)
{
        const struct target_verb *verb = verb_of(record, action);
        struct target_findings findings = {.done = report->done,
                .found = report->found,
                .bytes = report->found_bytes,
                .range_count = report->range_count};
        _cleanup_json_ cJSON *result = verb ? cJSON_CreateObject() : NULL;

        for (unsigned i = 0; i < report->range_count; i++) {
                findings.ranges[i].offset = report->ranges[i].offset;
                findings.ranges[i].length = report->ranges[i].length;
        }
        return result && verb->show_result(&findings, result) ? json_print(result) : NULL;
}

/* The sentence of an end. */
static void explain(const struct device_action *action, const struct action_outcome *outcome,
        const struct action_report *report, char *ret, size_t size)
{
        const char *verb = action->verb;

        switch (outcome->reason) {
        case REASON_ACTION_SUCCEEDED:
                if (report->found > 0)
                        (void)snprintf(ret, size,
                                "The action %s has ended, and has found %" PRIu64 " ranges with %" PRIu64
                                " bytes; its result lists the first of them.",
                                verb, report->found, report->found_bytes);
                else
                        (void)snprintf(ret, size, "The action %s has ended.", verb);
                break;
        case REASON_ACTION_CANCELLED:
                (void)snprintf(ret, size, "The action %s was cancelled by a client.", verb);
                break;
        case REASON_ACTION_INTERRUPTED:
                (void)snprintf(ret, size,
                        "The action %s ended with its worker, which is gone; start it again.", verb);
                break;
        case REASON_ACTION_NOT_TAKEN:
                (void)snprintf(ret, size,
                        "The action %s was not begun, because no worker has taken it; start it again when "
                        "the device is Live.",
                        verb);
                break;
        case REASON_ACTION_UNSUPPORTED:
                (void)snprintf(ret, size,
                        "The action %s cannot be carried out, because the program of the worker is too old "
                        "for it; restart the device, and start it again.",
                        verb);
                break;
        default:
                (void)snprintf(ret, size, "The action %s failed: %s.", verb,
                        report->error > 0 ? strerror(report->error) : "the worker gives no cause");
                break;
        }
}

static void end(struct managed_device *device, const struct device_record *record,
        const struct device_action *action, const struct action_outcome *outcome,
        const struct action_report *report)
{
        static const struct action_report none;
        const struct action_report *of_it = report && report->id == action->id ? report : &none;
        _cleanup_free_ char *result = of_it->id > 0 ? result_of(record, action, of_it) : NULL;
        char message[EVENT_MESSAGE_MAX];
        const struct action_end how = {.state = outcome->state,
                .reason = outcome->reason,
                .message = message,
                .result = result,
                .alarms = outcome->state == DEVICE_ACTION_FAILED
                          || (outcome->state == DEVICE_ACTION_SUCCEEDED && of_it->found > 0)};
        int r;

        if (of_it->id > 0)
                (void)device_store_set_action_progress(
                        device->env->config.store, device->id.name, action->id, of_it->done, of_it->total);
        explain(action, outcome, of_it, message, sizeof(message));
        r = device_store_end_action(device->env->config.store, device->id.name, action->id, &how);
        note_write(device, r);
        if (r >= 0)
                look_no_more(device);
}

/* ---- its way ---- */

/* It is RUNNING in the database before the worker knows of it. */
static void ask(struct managed_device *device, const struct device_action *action)
{
        struct device_acting *acting = &device->action;
        struct worker_proc *worker = device->process.worker;
        const uint64_t id = action->id;
        _cleanup_free_ char *verb = strdup(action->verb), *arguments = strdup(action->arguments);
        int r = verb && arguments ? device_store_run_action(device->env->config.store, device->id.name, id)
                                  : -ENOMEM;

        note_write(device, r);
        if (r < 0)
                return;
        acting->asked = id;
        acting->worker = worker_proc_started_at(worker);
        acting->asked_until = monotonic_now() + BEGIN_USEC;
        /* Not sent, it is not begun: then it ends at that time. */
        (void)worker_proc_act(worker, id, verb, arguments);
        look_at(device, monotonic_now() + LOOK_USEC);
}

/* The region has the request: it holds also where the worker does not listen. */
static void follow(struct managed_device *device, const struct device_action *action,
        const struct action_report *report, int region)
{
        if (report && report->id == action->id)
                (void)device_store_set_action_progress(
                        device->env->config.store, device->id.name, action->id, report->done, report->total);
        if (action->cancel_requested && region >= 0)
                (void)region_action_cancel(region, action->id);
        look_at(device, monotonic_now() + LOOK_USEC);
}

void device_action_follow(struct managed_device *device, const struct device_record *record, bool served)
{
        const struct device_action *action = device_actions_current(record->actions);
        const struct worker_proc *worker = served ? device->process.worker : NULL;
        struct device_acting *acting = &device->action;
        _cleanup_close_ int region = -1;
        struct action_report report;
        struct action_outcome outcome;
        bool is_known;

        if (!action) {
                look_no_more(device);
                return;
        }
        if (monotonic_now() < acting->retry_at)
                return;
        region = runtime_dir_open_region(device->env->config.runtime_dir, device->id.uid);
        is_known = region >= 0 && region_action_read(region, &report) >= 0;
        outcome = action_outcome(&(const struct action_view){
                .action = action,
                .report = is_known ? &report : NULL,
                .served = worker,
                .acts = worker && worker_proc_acts(worker),
                .worker = worker ? worker_proc_started_at(worker) : 0,
                .asked = worker && acting->asked == action->id
                         && acting->worker == worker_proc_started_at(worker),
                .overdue = !worker || monotonic_now() >= acting->asked_until,
        });
        switch (outcome.step) {
        case ACTION_STEP_NONE:
                break;
        case ACTION_STEP_ASK:
                ask(device, action);
                break;
        case ACTION_STEP_FOLLOW:
                follow(device, action, is_known ? &report : NULL, region);
                break;
        case ACTION_STEP_END:
                end(device, record, action, &outcome, is_known ? &report : NULL);
                break;
        }
}

void device_action_drop(struct managed_device *device)
{
        sd_event_source_disable_unref(device->action.timer);
}
