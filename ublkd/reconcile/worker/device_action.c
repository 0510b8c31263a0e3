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

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
        LOOK_USEC = 1000 * 1000,       /* how often it looks how far the action is */
        BEGIN_USEC = 10 * 1000 * 1000, /* within which a worker has begun it */
        END_USEC = 30 * 1000 * 1000,   /* within which a worker has ended it, if it was asked to */
        SETTLE_USEC = 2000 * 1000,     /* from the end of a recovery to the first write */
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
        device->action.asked_until = 0;
        device->action.cancel_until = 0;
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

/* Also of a disk whose new options do not allow it any more. */
static const struct target_verb *verb_of(
        const struct device_record *record, const struct device_action *action)
{
        struct target_tree_verb verb;

        if (!record->spec || !record->spec->tree)
                return NULL;
        return target_tree_verb(record->spec->tree, action->verb, &verb) == -ENOENT ? NULL : verb.verb;
}

/* verb: NULL is fine. NULL: there is none, or ENOMEM: then the end is stored without. */
static char *result_of(const struct target_verb *verb, const struct action_report *report)
{
        struct target_findings findings = {.done = report->done,
                .found = report->found,
                .bytes = report->found_bytes,
                .number = report->number,
                .range_count = report->range_count};
        _cleanup_json_ cJSON *result = verb ? cJSON_CreateObject() : NULL;

        for (unsigned i = 0; i < report->range_count; i++) {
                findings.ranges[i].offset = report->ranges[i].offset;
                findings.ranges[i].length = report->ranges[i].length;
        }
        return result && verb->show_result(&findings, result) ? json_print(result) : NULL;
}

/* did: what the ranges of the report are to the verb. */
static void explain_success(
        const char *verb, const char *did, const struct action_report *report, char *ret, size_t size)
{
        if (report->found > 0)
                (void)snprintf(ret, size,
                        "The action %s has ended, and has %s %" PRIu64 " ranges with %" PRIu64
                        " bytes; its result lists the first of them.",
                        verb, did, report->found, report->found_bytes);
        else
                (void)snprintf(ret, size, "The action %s has ended.", verb);
}

/* Return what ends the sentence of an action that no worker has begun; NULL for other reasons. */
static const char *not_begun(enum condition_reason reason)
{
        switch (reason) {
        case REASON_ACTION_NOT_TAKEN:
                return "was not begun, because no worker has taken it; start it again when the device is "
                       "Live";
        case REASON_TEST_TARGET_NOT_ALLOWED:
                return "was not begun, because it is for tests, and this ublkd refuses it "
                       "(AllowFaultTarget=no)";
        case REASON_ACTION_UNSUPPORTED:
                return "cannot be carried out, because the program of the worker is too old for it; restart "
                       "the device, and start it again";
        default:
                return NULL;
        }
}

/* The sentence of an end. */
static void explain(const struct device_action *action, const struct target_verb *of,
        const struct action_outcome *outcome, const struct action_report *report, char *ret, size_t size)
{
        const char *verb = action->verb, *half_done = of ? of->half_done : NULL;

        switch (outcome->reason) {
        case REASON_ACTION_SUCCEEDED:
                explain_success(verb, of && of->loses ? "lost" : "found", report, ret, size);
                break;
        case REASON_ACTION_CANCELLED:
                (void)snprintf(ret, size,
                        outcome->unconfirmed
                                ? "The action %s was cancelled by a client, and the worker has not "
                                  "confirmed that it has ended."
                                : "The action %s was cancelled by a client.",
                        verb);
                break;
        case REASON_ACTION_INTERRUPTED:
                (void)snprintf(ret, size, "The action %s ended with its worker, which is gone; %s.", verb,
                        half_done ? half_done : "start it again");
                break;
        default:
                if (not_begun(outcome->reason))
                        (void)snprintf(ret, size, "The action %s %s.", verb, not_begun(outcome->reason));
                else
                        (void)snprintf(ret, size, "The action %s failed: %s%s%s.", verb,
                                report->error > 0 ? strerror(report->error) : "the worker gives no cause",
                                half_done ? "; " : "", half_done ? half_done : "");
                break;
        }
}

/* A worker that takes the order only now, or that has not ended it, ends it then: no client knows of it any more. */
static void end_late_one(const struct device_action *action, const struct action_report *report, int region)
{
        if (region >= 0 && action->state == DEVICE_ACTION_RUNNING
                && (report->id != action->id || report->state == REGION_ACTION_RUNNING))
                (void)region_action_cancel(region, action->id);
}

static void end(struct managed_device *device, const struct device_record *record,
        const struct device_action *action, const struct action_outcome *outcome,
        const struct action_report *report, int region)
{
        static const struct action_report none;
        const struct action_report *of_it = report->id == action->id ? report : &none;
        const struct target_verb *verb = verb_of(record, action);
        _cleanup_free_ char *result = of_it->id > 0 ? result_of(verb, of_it) : NULL;
        char message[EVENT_MESSAGE_MAX];
        const struct action_end how = {.state = outcome->state,
                .reason = outcome->reason,
                .message = message,
                .result = result,
                .alarms = outcome->state == DEVICE_ACTION_FAILED
                          || (outcome->state == DEVICE_ACTION_SUCCEEDED && of_it->found > 0
                                  && !(verb && verb->loses))};
        int r;

        end_late_one(action, of_it, region);
        if (of_it->id > 0)
                (void)device_store_set_action_progress(
                        device->env->config.store, device->id.name, action->id, of_it->done, of_it->total);
        explain(action, verb, outcome, of_it, message, sizeof(message));
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

static void follow(
        struct managed_device *device, const struct device_action *action, const struct action_report *report)
{
        if (report->id == action->id)
                (void)device_store_set_action_progress(
                        device->env->config.store, device->id.name, action->id, report->done, report->total);
        look_at(device, monotonic_now() + LOOK_USEC);
}

/* End the one that the worker goes on with, and wait for that. */
static void clear(struct managed_device *device, const struct action_report *report, int region)
{
        if (device->action.asked_until == 0)
                device->action.asked_until = monotonic_now() + BEGIN_USEC;
        (void)region_action_cancel(region, report->id);
        look_at(device, monotonic_now() + LOOK_USEC);
}

/* The region has the request: it holds also where the worker does not listen. Of one that no worker was asked for it has none:
 * there is room for one, and the one before may still have to end. */
static void pass_cancellation(struct managed_device *device, const struct device_action *action, int region)
{
        if (!action->cancel_requested)
                return;
        if (region >= 0 && action->state == DEVICE_ACTION_RUNNING)
                (void)region_action_cancel(region, action->id);
        if (device->action.cancel_until == 0)
                device->action.cancel_until = monotonic_now() + END_USEC;
}

static void note_server(struct device_acting *acting, const struct worker_proc *worker)
{
        if (!worker || acting->server == worker_proc_started_at(worker))
                return;
        acting->server = worker_proc_started_at(worker);
        acting->served_at = monotonic_now();
}

static bool was_asked(const struct device_acting *acting, const struct device_action *action,
        const struct worker_proc *worker)
{
        return worker && acting->asked == action->id && acting->worker == worker_proc_started_at(worker);
}

/* Return whether its end is that of the worker before, whose successor serves only now. */
static bool is_early(const struct device_acting *acting, const struct device_action *action,
        const struct worker_proc *worker)
{
        return worker && action->state == DEVICE_ACTION_RUNNING && !was_asked(acting, action, worker)
               && monotonic_now() < acting->served_at + SETTLE_USEC;
}

/* The setting may have changed since the client has asked. */
static bool is_refused(const struct managed_device *device, const struct device_record *record,
        const struct device_action *action)
{
        const struct target_verb *verb = verb_of(record, action);

        return verb && verb->for_tests && !device->env->config.allow_fault_target;
}

/* Return the outcome. region: or -errno. */
static struct action_outcome judge(struct managed_device *device, const struct device_record *record,
        const struct device_action *action, const struct worker_proc *worker, int region,
        struct action_report *report)
{
        const struct device_acting *acting = &device->action;
        uint64_t now = monotonic_now();
        int r = region < 0 ? region : region_action_read(region, report);

        return action_outcome(&(const struct action_view){
                .action = action,
                .report = r >= 0 ? report : NULL,
                .unreadable = r < 0 && r != -ENOENT && r != -ENODATA && r != -EPROTO,
                .served = worker,
                .acts = worker && worker_proc_acts(worker),
                .refused = is_refused(device, record, action),
                .worker = worker ? worker_proc_started_at(worker) : 0,
                .asked = was_asked(acting, action, worker),
                .overdue = !worker || (acting->asked_until > 0 && now >= acting->asked_until),
                .cancel_overdue = acting->cancel_until > 0 && now >= acting->cancel_until,
        });
}

void device_action_follow(struct managed_device *device, const struct device_record *record, bool served)
{
        const struct device_action *action = device_actions_current(record->actions);
        const struct worker_proc *worker = served ? device->process.worker : NULL;
        struct action_report report = {};
        struct action_outcome outcome;
        _cleanup_close_ int region = -1;

        note_server(&device->action, worker);
        if (!action) {
                look_no_more(device);
                return;
        }
        region = runtime_dir_open_region(device->env->config.runtime_dir, device->id.uid);
        pass_cancellation(device, action, region);
        if (monotonic_now() < device->action.retry_at)
                return;
        outcome = judge(device, record, action, worker, region, &report);
        if (outcome.step == ACTION_STEP_END && is_early(&device->action, action, worker))
                outcome.step = ACTION_STEP_FOLLOW;
        switch (outcome.step) {
        case ACTION_STEP_NONE:
                break;
        case ACTION_STEP_ASK:
                ask(device, action);
                break;
        case ACTION_STEP_FOLLOW:
                follow(device, action, &report);
                break;
        case ACTION_STEP_CLEAR:
                clear(device, &report, region);
                break;
        case ACTION_STEP_END:
                end(device, record, action, &outcome, &report, region);
                break;
        }
}

void device_action_drop(struct managed_device *device)
{
        sd_event_source_disable_unref(device->action.timer);
}
