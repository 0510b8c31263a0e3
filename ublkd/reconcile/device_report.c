/* SPDX-License-Identifier: MIT */
/* How the facts of a turn are told to the user: a phase, a reason, and a sentence that says what happened and
 * what will be done next, and when. */
#include "ublkd/reconcile/device_report.h"
#include "ublkd/reconcile/device_ability.h"
#include "ublkd/reconcile/device_backing.h"
#include "ublkd/reconcile/device_faults.h"
#include "ublkd/reconcile/device_path.h"
#include "ublkd/reconcile/device_space.h"
#include "ublkd/reconcile/device_stable_path.h"
#include "ublkd/reconcile/device_trial.h"
#include "ublkd/reconcile/device_wish.h"
#include "ublkd/reconcile/managed_device.h"
#include "ublkd/reconcile/monotonic.h"
#include "ublkd/reconcile/user_words.h"

#include "ublkd/base/clock.h"
#include "ublkd/base/json_time.h"
#include "ublkd/base/quantity.h"
#include "ublkd/base/sentence.h"
#include "ublkd/store/device_record.h"
#include "ublkd/driver/device_route.h"

#include <stdio.h>
#include <string.h>

struct told {
        enum device_phase phase;
        enum condition_reason reason;
};

static bool is_serving(const struct managed_device *device)
{
        return device->view.facts.kernel == KERNEL_LIVE && device->view.facts.worker == PLAN_WORKER_SERVING;
}

static bool is_manual(const struct device_record *record)
{
        return record->spec && record->spec->options.recovery.trigger == TRIGGER_MANUAL;
}

/* The last worker left, or leaves (the kernel's disk may be down before it is gone), because it was told to,
 * and nothing has failed since. */
static bool is_handed_over(const struct managed_device *device)
{
        enum condition_reason reason = device->note.reason;

        return reason == REASON_NONE ? device->attempt.retired : reason_info(reason)->handover;
}

static bool is_gone(const struct managed_device *device)
{
        return device->view.facts.kernel == KERNEL_ABSENT && device->view.facts.worker == PLAN_WORKER_NONE;
}

static struct told tell_absent(const struct managed_device *device, const struct device_record *record)
{
        if (record->deleting)
                return (struct told){PHASE_STOPPING, REASON_DELETING};
        if (!record->spec->options.enabled)
                return is_gone(device) ? (struct told){PHASE_DISABLED, REASON_DISABLED}
                                       : (struct told){PHASE_STOPPING, REASON_DISABLING};
        if (spec_unsupported(record->spec, device_features(device)))
                return (struct told){PHASE_FAILED, REASON_NOT_SUPPORTED};
        /* A worker that was started for the spec before goes; there is no disk to take away. */
        return device->view.facts.kernel == KERNEL_ABSENT ? (struct told){PHASE_STARTING, REASON_STARTING}
                                                          : (struct told){PHASE_STOPPING, REASON_REPLACING};
}

/* A driver that is not there has no disks; one that cannot be asked may have. */
static bool may_have_disks(const struct host *host)
{
        return host->problems.count == 0 || host->problems.items[0].error != ENOENT;
}

/* What is known of the disk is from when there was a driver; before, there was none. */
static struct told tell_without_driver(
        const struct managed_device *device, const struct device_record *record)
{
        if (device->first.unseen && may_have_disks(device->env->config.host))
                return (struct told){PHASE_UNKNOWN, REASON_HOST_NOT_READY};
        if (record->deleting)
                return (struct told){PHASE_STOPPING, REASON_HOST_NOT_READY};
        if (!record->spec->options.enabled && is_gone(device) && !device->process.worker)
                return (struct told){PHASE_DISABLED, REASON_DISABLED};
        return (struct told){
                record->spec->options.enabled ? PHASE_PENDING : PHASE_STOPPING, REASON_HOST_NOT_READY};
}

static bool grows(const struct managed_device *device)
{
        return device->view.facts.want == WANT_EXTENDED || device->view.facts.want == WANT_GROWN;
}

/* Why the disk could not grow to what is wanted now; what an earlier try came to says nothing about it. */
static const char *growth_refusal(const struct managed_device *device, const struct device_record *record)
{
        const struct problem_list *refusal = worker_proc_refusal(device->process.worker);

        if (refusal->count > 0 && user_words_equal(device->step.grown_for, user_words_of(record)))
                return refusal->items[0].detail;
        return device->note.sentence;
}

static enum condition_reason live_reason(
        const struct managed_device *device, const struct device_record *record)
{
        if (device->view.facts.want == WANT_RENEWED)
                return REASON_RESTARTING;
        if (!grows(device) && device_trial_refusal(device, record))
                return REASON_CANNOT_RESTART;
        return !grows(device)                   ? REASON_LIVE
               : growth_refusal(device, record) ? REASON_CANNOT_GROW
                                                : REASON_GROWING;
}

/* Nobody may recover it but who is asked to. A live disk that has lost its worker is DOWN to us, except one
 * that cannot be recovered: the driver is about to take that away. */
static struct told tell_held(const struct managed_device *device, bool down)
{
        bool recoverable =
                !ublk_ctl_missing(ublk_ctl_flags(KERNEL_RECOVERY_QUEUE), device->view.kernel.flags);
        bool leaving = device->view.facts.worker == PLAN_WORKER_LEAVING && !recoverable;

        if (device->view.facts.kernel == KERNEL_LIVE
                && (device->view.facts.worker == PLAN_WORKER_NONE || leaving))
                return (struct told){PHASE_STOPPING, REASON_WAITS_FOR_RECOVER};
        return (struct told){down ? PHASE_QUIESCED : PHASE_FAILED, REASON_WAITS_FOR_RECOVER};
}

/* A step to make a disk failed, and has not succeeded since. */
static bool cannot_be_made(const struct managed_device *device)
{
        static const bool makes[_ACTION_MAX] = {
                [ACTION_ADD_DEV] = true, [ACTION_SET_PARAMS] = true, [ACTION_START_DEV] = true};

        return device->attempt.error < 0 && makes[device->attempt.failed];
}

/* Something went wrong, and has not gone right since. What is done about a disk that cannot be made is not
 * always to wait for the next try. */
static bool is_in_trouble(const struct managed_device *device, bool down, uint64_t next_try)
{
        if (device->note.reason == REASON_NONE || is_handed_over(device)
                || attempt_waits_for_release(&device->attempt))
                return false;
        return next_try != UINT64_MAX || device->attempt.deaths > 1 || (!down && cannot_be_made(device));
}

static struct told tell(
        const struct managed_device *device, const struct device_record *record, uint64_t next_try)
{
        bool down = device->view.facts.kernel == KERNEL_DOWN
                    || (device->view.facts.kernel == KERNEL_LIVE
                            && device->view.facts.worker != PLAN_WORKER_READY);

        if (!record->spec && !record->deleting)
                return (struct told){PHASE_FAILED, REASON_QUARANTINED};
        if (!device->env->ctl)
                return tell_without_driver(device, record);
        if (device->first.unseen)
                return (struct told){PHASE_UNKNOWN,
                        device->note.reason != REASON_NONE ? device->note.reason : REASON_NOT_YET_KNOWN};
        if (device->view.facts.want == WANT_ABSENT)
                return tell_absent(device, record);
        if (is_serving(device))
                return (struct told){PHASE_LIVE, live_reason(device, record)};
        if (device->view.facts.want == WANT_HELD)
                return tell_held(device, down);
        if (device->backing.changed
                && device->note.reason != REASON_NONE) /* also while it is looked at again */
                return (struct told){PHASE_FAILED, device->note.reason};
        if (is_in_trouble(device, down, next_try))
                return (struct told){PHASE_BACKOFF, device->note.reason};
        if (device->view.facts.want == WANT_GIVEN_UP)
                return (struct told){PHASE_STOPPING, REASON_GAVE_UP};
        return down ? (struct told){PHASE_RECOVERING,
                              is_handed_over(device) ? REASON_RESTARTING : REASON_RECOVERING}
                    : (struct told){PHASE_STARTING, REASON_STARTING};
}

/* CLOCK_REALTIME, whole milliseconds of it; 0: there is no time for it. */
static uint64_t next_try_time(uint64_t next_try)
{
        uint64_t now = monotonic_now();

        if (next_try == UINT64_MAX || next_try <= now)
                return 0;
        return ((uint64_t)clock_msec(CLOCK_REALTIME) + (next_try - now) / 1000) * 1000;
}

static void format_next_try(uint64_t usec, char text[static 96])
{
        char at[TIME_TEXT_SIZE];

        text[0] = '\0';
        if (usec > 0 && time_format(usec, at))
                snprintf(text, 96, " The next try is at %s.", at);
}

static const char *host_sentence(const struct managed_device *device)
{
        const struct problem_list *problems = &device->env->config.host->problems;

        return problems->count > 0 ? problems->items[0].detail : "The ublk driver does not answer.";
}

static const char *note_or(const struct managed_device *device, const char *fallback)
{
        return device->note.sentence ? device->note.sentence : fallback;
}

static unsigned failed_attempts(const struct attempt *attempt)
{
        unsigned steps = attempt->tries > attempt->blind ? attempt->tries : attempt->blind;

        return attempt->deaths > steps ? attempt->deaths : steps;
}

static int explain_backoff(const struct managed_device *device, enum condition_reason reason,
        uint64_t next_try, struct device_status *status)
{
        char when[96];
        int r;

        status->next_try_at = next_try_time(next_try);
        status->attempts = failed_attempts(&device->attempt);
        format_next_try(status->next_try_at, when);
        r = device_status_set_cause(status, "%s",
                note_or(device, device->attempt.deaths > 1 ? "The worker died." : "The last step failed."));
        if (r < 0)
                return r;
        if (device->attempt.deaths > 1)
                return device_status_explain(status, reason, "%s That was try %u in a row.%s", status->cause,
                        device->attempt.deaths, when[0] ? when : " Another one is under way.");
        return device_status_explain(
                status, reason, "%s%s", status->cause, when[0] ? when : " Another try is under way.");
}

/* What keeps the kernel from taking the disk away says more than that it is to be taken away. */
static enum condition_reason absent_reason(const struct managed_device *device, enum condition_reason reason)
{
        return reason_info(device->note.reason)->obstacle ? device->note.reason : reason;
}

static int explain_absent(const struct managed_device *device, const struct device_record *record,
        enum condition_reason reason, struct device_status *status)
{
        static const struct {
                enum condition_reason reason;
                const char *sentence;
        } sentences[] = {
                {REASON_DELETING,  "The disk is being removed; the record goes with it."                    },
                {REASON_DISABLED,  "Disabled: the record is kept, and there is no disk until it is enabled."},
                {REASON_DISABLING, "The disk is being removed; the record is kept."                         },
                {REASON_REPLACING, "The old disk is being removed; then it is made anew from the new spec." },
        };
        for (size_t i = 0; i < ARRAY_SIZE(sentences); i++)
                if (reason == sentences[i].reason)
                        return device_status_explain(status, absent_reason(device, reason), "%s%s%s",
                                sentences[i].sentence, device->note.sentence ? " " : "", note_or(device, ""));
        return device_status_explain(
                status, reason, "%s", spec_unsupported(record->spec, device_features(device)));
}

static int explain_live(const struct managed_device *device, const struct device_record *record,
        enum condition_reason reason, struct device_status *status)
{
        const char *refusal = grows(device) ? growth_refusal(device, record) : NULL;
        char size[SIZE_TEXT_MAX], wanted[SIZE_TEXT_MAX];
        int r;

        format_size(device->view.geometry.size, size);
        format_size(device->view.geometry.wanted, wanted);
        if (device->view.facts.want == WANT_RENEWED)
                return device_status_explain(status, reason,
                        "Serving /dev/ublkb%d; its worker finishes what it has in hand, and another one "
                        "takes its place.",
                        record->number);
        if (refusal) {
                r = device_status_set_cause(status, "It cannot grow from %s to %s: %s%s", size, wanted,
                        refusal, full_stop(refusal));
                return r < 0 ? r
                             : device_status_explain(status, reason,
                                       "Serving /dev/ublkb%d as before, with %s; it cannot grow to %s: %s%s "
                                       "It is tried again until it can.",
                                       record->number, size, wanted, refusal, full_stop(refusal));
        }
        if (grows(device))
                return device_status_explain(
                        status, reason, "Serving /dev/ublkb%d, which grows to %s.", record->number, wanted);
        refusal = device_trial_refusal(device, record);
        if (refusal) {
                r = device_status_set_cause(status, "%s%s", refusal, full_stop(refusal));
                return r < 0 ? r
                             : device_status_explain(status, reason,
                                       "Serving /dev/ublkb%d as before; it was not restarted, because its "
                                       "next worker could not take over: %s Mend that, and restart it "
                                       "again.",
                                       record->number, status->cause);
        }
        return device_status_explain(status, reason, "Serving /dev/ublkb%d.", record->number);
}

/* The kernel cannot be asked about any disk. */
static int explain_host(const struct managed_device *device, const struct device_record *record,
        enum condition_reason reason, struct device_status *status)
{
        const char *host = host_sentence(device);

        if (status->phase == PHASE_UNKNOWN)
                return device_status_explain(status, reason,
                        "%s%s So it is not known whether /dev/ublkb%d is there; the driver is asked again "
                        "every few "
                        "seconds.",
                        host, full_stop(host), record->number);
        if (!record->deleting)
                return device_status_explain(
                        status, reason, "%s%s It is tried again every few seconds.", host, full_stop(host));
        return device_status_explain(status, reason,
                "It is to be removed, which waits until the driver can tell that /dev/ublkb%d is gone. %s%s "
                "The driver is looked for every few seconds.",
                record->number, host, full_stop(host));
}

static int explain(const struct managed_device *device, const struct device_record *record,
        const struct told *told, uint64_t next_try, struct device_status *status)
{
        if (told->reason == REASON_HOST_NOT_READY)
                return explain_host(device, record, told->reason, status);
        switch (told->phase) {
        case PHASE_STARTING:
                return device_status_explain(status, told->reason, "The disk is being made: %s is next.",
                        plan_action_to_string(device->step.action));
        case PHASE_LIVE:
                return explain_live(device, record, told->reason, status);
        case PHASE_RECOVERING:
                return device_status_explain(status, told->reason,
                        "%s A new worker is taking over the queues of /dev/ublkb%d.",
                        note_or(device, is_handed_over(device) ? "The worker was told to leave."
                                                               : "There is no worker that serves it."),
                        record->number);
        case PHASE_BACKOFF:
                return explain_backoff(device, told->reason, next_try, status);
        case PHASE_QUIESCED:
                return device_status_explain(status, told->reason,
                        "%s The disk waits for 'ublkctl recover %s' (POST /devices/%s/recover), as "
                        "recovery.trigger is \"manual\".",
                        note_or(device, "There is no worker that serves it."), record->name, record->name);
        case PHASE_FAILED:
                if (!record->spec)
                        return device_record_explain_quarantine(record, status);
                if (device->backing.changed)
                        return explain_backoff(device, told->reason, next_try, status);
                if (device->view.facts.want == WANT_HELD)
                        return device_status_explain(status, told->reason,
                                "%s There is no disk left to recover; 'ublkctl recover %s' (POST "
                                "/devices/%s/recover) makes it anew.",
                                note_or(device, "The worker died."), record->name, record->name);
                return explain_absent(device, record, told->reason, status);
        case PHASE_STOPPING:
        case PHASE_DISABLED:
                if (device->view.facts.want == WANT_HELD)
                        return device_status_explain(status, told->reason,
                                "%s The kernel removes the disk, which cannot be recovered; then "
                                "'ublkctl recover %s' (POST /devices/%s/recover) makes it anew.",
                                note_or(device, "The worker died."), record->name, record->name);
                if (device->view.facts.want == WANT_GIVEN_UP)
                        return device_status_explain(status, told->reason,
                                "I/O has waited for recovery.giveUpAfter: it is failed now, and the disk is "
                                "removed; %s.",
                                is_manual(record) ? "'ublkctl recover' makes it anew"
                                                  : "it is made anew next");
                return explain_absent(device, record, told->reason, status);
        case PHASE_UNKNOWN:
                return device_status_explain(status, told->reason,
                        "%s%sIt is not known yet whether /dev/ublkb%d is there; the kernel is asked again.",
                        note_or(device, ""), device->note.sentence ? " " : "", record->number);
        case PHASE_PENDING: /* above */
        case _PHASE_MAX:
                break;
        }
        return -EINVAL;
}

/* The record of a disk that is being removed may have no spec any more. */
static void fill_route(
        const struct managed_device *device, const struct device_record *record, struct device_status *status)
{
        struct data_route route = ublk_ctl_route(device->view.kernel.flags);
        enum data_path wanted = record->spec ? (enum data_path)record->spec->options.data_path : route.path;
        const struct disk_params *params =
                device->process.worker ? worker_proc_params(device->process.worker) : NULL;

        status->data_path = data_path_to_string(route.path);
        status->data_path_reason =
                device_route_reason(wanted, params ? params->fastest : DATA_PATH_AUTO, &route);
        status->batch = route.batch;
}

static void fill(const struct managed_device *device, const struct device_record *record,
        enum device_phase phase, struct device_status *status)
{
        bool disk = device->view.facts.kernel == KERNEL_LIVE || device->view.facts.kernel == KERNEL_DOWN;

        *status = (struct device_status){
                .phase = phase,
                .observed_generation = record->generation,
                .observed_restart = record->restart,
                .observed_asked = record->asked,
                .settled = is_serving(device) && device->view.facts.want == WANT_PRESENT,
                .number = record->number,
                .disk = disk,
                .size = disk ? device->view.geometry.size : 0,
                .worker.restarts = device->process.history.restarts,
                .recoveries = {.count = device->process.history.recoveries,
                               .last_ms = device->process.history.last_recovery_ms},
                .kernel_flags = device->view.facts.kernel == KERNEL_ABSENT ? 0 : device->view.kernel.flags,
        };
        device_backing_show(device, record, status);
        device_faults_tell(device, &status->faults);
        if (disk)
                fill_route(device, record, status);
        if (!device->process.worker)
                return;
        status->worker.pid = worker_proc_pid(device->process.worker);
        status->worker.started_at = worker_proc_started_at(device->process.worker);
        snprintf(status->worker.version, sizeof(status->worker.version), "%s",
                worker_proc_version(device->process.worker));
}

/* What each condition beside Ready is for this device: 0, with *ret untouched where it is not about it, or
 * -ENOMEM. */
static int (*const tellers[_CONDITION_MAX])(const struct managed_device *device,
        const struct device_record *record, struct device_condition *ret) = {
        [CONDITION_PATH_LEADS_TO_STORE] = device_path_condition,
        [CONDITION_DURABLE] = device_faults_durable,
        [CONDITION_BACKING_WHOLE] = device_faults_whole,
        [CONDITION_SPACE] = device_space_condition,
        [CONDITION_STABLE_PATH] = device_stable_path,
};

static int fill_conditions(const struct managed_device *device, const struct device_record *record,
        struct device_conditions *conditions)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < _CONDITION_MAX; i++)
                if (tellers[i])
                        r = tellers[i](device, record, &conditions->of[i]);
        return r;
}

int device_report(const struct managed_device *device, const struct device_record *record, uint64_t next_try)
{
        struct told told = tell(device, record, next_try);
        struct device_status status;
        int r;

        fill(device, record, told.phase, &status);
        r = explain(device, record, &told, next_try, &status);
        if (r >= 0)
                r = fill_conditions(device, record, &status.conditions);
        if (r >= 0)
                device_stable_path_tell(device, &record->status.conditions.of[CONDITION_STABLE_PATH],
                        &status.conditions.of[CONDITION_STABLE_PATH]);
        if (r >= 0)
                r = device_store_set_status(device->env->config.store, device->id.name, &status);
        device_status_clear(&status);
        return r;
}
