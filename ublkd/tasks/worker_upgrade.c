/* SPDX-License-Identifier: MIT */
/* Replaces the workers that run another version of their program than ublkd starts now.
 *
 * It decides by what the store shows, and does nothing that a client could not do: the reconciler tries each restart
 * before it (device_preflight.h). Only one device is replaced at a time. Its next worker must serve for a moment before
 * the next device follows, so that a program that cannot serve is seen by one disk and not by all. At the first failure
 * it stops, until ublkd reloads or starts again. A device that has refused a restart comes last then.
 *
 * A device on a file that its tenant has named is passed over instead: the tenant can make the file one that no worker may
 * open, and must not keep the workers of others from being replaced. */
#include "ublkd/tasks/worker_upgrade.h"
#include "ublkd/tasks/upgrade_queue.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/log.h"
#include "ublkd/base/sentence.h"
#include "ublkd/store/device_change.h"
#include "ublkd/store/restart_harm.h"

#include <stdlib.h>
#include <string.h>

enum {
        REPLACE_USEC = 60 * 1000 * 1000, /* until the next worker serves; a preflight may take 30 s */
        WATCH_USEC = 1000 * 1000,        /* how long it must serve */
};

enum upgrade_state {
        UPGRADE_IDLE,      /* no device is being replaced */
        UPGRADE_REPLACING, /* the restart was requested */
        UPGRADE_WATCHING,  /* the next worker serves */
        UPGRADE_STOPPED,   /* a replacement failed */
};

struct worker_upgrade {
        struct device_store *store;
        struct host *host;
        struct service_line *line;
        bool wanted;
        enum upgrade_state state;
        char uid[UID_TEXT_SIZE];    /* of the device that is being replaced, or whose replacement failed */
        uint32_t restart;           /* the restart of it that is watched */
        pid_t pid;                  /* of its next worker, the same */
        struct upgrade_queue queue; /* also of devices that were passed over since the last reload */
        uint64_t features;          /* of the driver, for which it was made */
        bool is_stale;              /* it does not know all devices */
        sd_event_source *look;      /* armed: something has changed */
        sd_event_source *limit;
};

DEFINE_CLEANUP(struct worker_upgrade, worker_upgrade_free);

/* ---- what may be replaced ---- */

/* A disk with one of these in trouble keeps its worker: the next one could fail to take over, or would lose what this
 * one knows. The others do not concern a restart. */
static const bool holds[_CONDITION_MAX] = {
        [CONDITION_PATH_LEADS_TO_STORE] = true, /* the next worker may open the path */
        [CONDITION_DURABLE] = true,
        [CONDITION_BACKING_WHOLE] = true,
        [CONDITION_SPACE] = true, /* writes that wait would fail, or be refused */
        [CONDITION_PROGRESS] = true,
        [CONDITION_SWAP_SAFE] = true, /* a new process needs memory, which may wait for its disk */
};

static bool is_in_trouble(const struct device_status *status)
{
        for (size_t i = 0; i < _CONDITION_MAX; i++) {
                const struct device_condition *condition = &status->conditions.of[i];
                bool is_bad = condition->status == CONDITION_FALSE || condition->status == CONDITION_UNKNOWN;

                if (holds[i] && is_bad && condition->reason != REASON_STORE_LOW) /* no write waits yet */
                        return true;
        }
        return false;
}

static bool is_wanted(const struct device_record *record)
{
        return record->age == RECORD_CURRENT && !record->deleting && device_record_enabled(record);
}

/* Return whether the disk is served, and whether the reconciler has done or refused each restart that was requested. */
static bool is_settled(const struct device_record *record)
{
        return record->status.phase == PHASE_LIVE && record->status.converged
               && record->status.observed_restart == record->restart;
}

bool worker_upgrade_may_replace(const struct device_record *record, uint64_t features)
{
        return is_wanted(record) && is_settled(record) && !is_in_trouble(&record->status)
               && !restart_harm(record, features);
}

static bool was_refused(const struct device_record *record)
{
        return record->restart > 0 && record->restart_refused == record->restart;
}

/* Return whether the device is on a file that its tenant has named. */
static bool is_of_a_user(const struct device_record *record)
{
        return record->spec && device_store_user(record, record->spec) > 0;
}

static struct upgrade_facts facts_of(const struct worker_upgrade *upgrade, const struct device_record *record)
{
        return (struct upgrade_facts){
                .outdated = device_status_needs_restart(&record->status),
                .ready = worker_upgrade_may_replace(record, upgrade->features),
                .refused = was_refused(record),
                .restarting = is_wanted(record) && record->status.reason == REASON_RESTARTING,
        };
}

static void note_device(struct worker_upgrade *upgrade, const struct device_record *record)
{
        const struct upgrade_facts facts = facts_of(upgrade, record);

        if (upgrade_queue_set(&upgrade->queue, record->name, &facts) < 0)
                upgrade->is_stale = true;
}

/* Read all devices again: at first, after a reload, when the driver has other features, or after ENOMEM. The queue keeps which
 * were passed over. */
static void refresh(struct worker_upgrade *upgrade)
{
        if (!upgrade->is_stale && upgrade->features == upgrade->host->features)
                return;
        upgrade->is_stale = false;
        upgrade->features = upgrade->host->features;
        DEVICE_STORE_FOREACH (record, upgrade->store)
                note_device(upgrade, record);
}

/* Return the next device, or NULL: none, or a restart is under way, of a client or of an earlier ublkd. */
static const struct device_record *find_due(const struct worker_upgrade *upgrade)
{
        const char *name = upgrade->queue.restarting > 0 ? NULL : upgrade_queue_next(&upgrade->queue);

        return name ? device_store_get(upgrade->store, name) : NULL;
}

/* Return whether the failure is over: the device at which it stopped is served or gone, and no worker has another version. */
static bool is_nothing_left(const struct worker_upgrade *upgrade)
{
        const struct device_record *failed = device_store_find_uid(upgrade->store, upgrade->uid);

        return upgrade->queue.outdated == 0 && (!failed || !is_wanted(failed) || is_settled(failed));
}

/* ---- one device ---- */

static void set_limit(struct worker_upgrade *upgrade, uint64_t usec)
{
        int r = sd_event_source_set_time_relative(upgrade->limit, usec);

        if (r >= 0)
                r = sd_event_source_set_enabled(upgrade->limit, SD_EVENT_ONESHOT);
        if (r < 0)
                log_errno(LOG_WARNING, NULL, r,
                        "No time limit can be set for the replacement of a worker: %s; it goes on "
                        "without",
                        strerror(-r));
}

static void look_again(struct worker_upgrade *upgrade)
{
        (void)sd_event_source_set_enabled(upgrade->look, SD_EVENT_ONESHOT);
}

static void rest(struct worker_upgrade *upgrade, enum upgrade_state state)
{
        upgrade->state = state;
        (void)sd_event_source_set_enabled(upgrade->limit, SD_EVENT_OFF);
}

/* Stop at the first failure; `why` is a sentence. */
static void stop(struct worker_upgrade *upgrade, const struct device_record *record, const char *why)
{
        rest(upgrade, UPGRADE_STOPPED);
        memcpy(upgrade->uid, record->uid, sizeof(upgrade->uid));
        log_record(LOG_WARNING,
                &(const struct log_fields){
                        .device = record->name, .reason = reason_to_string(REASON_UPGRADE_STOPPED)},
                "Replacing workers of another version stopped: the worker of %s was not replaced: %s%s The "
                "other workers serve "
                "on; correct this, and reload ublkd",
                record->name, why, full_stop(why));
        (void)device_store_note(upgrade->store, record->name, EVENT_WARNING, REASON_UPGRADE_STOPPED,
                "Replacing workers of another version stopped here: %s%s ublkd continues when it is "
                "reloaded.",
                why, full_stop(why));
        problem_list_clear(&upgrade->host->workers);
        (void)problem_add(&upgrade->host->workers, 0, "", reason_to_string(REASON_UPGRADE_STOPPED),
                "ublkd was replacing the workers of another version one by one, and stopped at %s: %s%s The "
                "other workers "
                "serve on. Correct this, then reload ublkd ('systemctl reload ublkd'): it continues",
                record->name, why, full_stop(why));
        service_line_changed(upgrade->line);
}

static int pass_over(struct worker_upgrade *upgrade, const struct device_record *record, const char *why)
{
        int r = upgrade_queue_pass_over(&upgrade->queue, record->name);

        if (r < 0)
                return r;
        rest(upgrade, UPGRADE_IDLE);
        (void)device_store_note(upgrade->store, record->name, EVENT_WARNING, REASON_UPGRADE_PASSED_OVER,
                "The worker was not replaced by one of the present version: %s%s Correct this, then restart "
                "the "
                "device.",
                why, full_stop(why));
        look_again(upgrade);
        return 0;
}

static void give_up(struct worker_upgrade *upgrade, const struct device_record *record, const char *why)
{
        if (!is_of_a_user(record) || pass_over(upgrade, record, why) < 0)
                stop(upgrade, record, why);
}

static void start_again(struct worker_upgrade *upgrade)
{
        upgrade->state = UPGRADE_IDLE;
        problem_list_clear(&upgrade->host->workers);
        service_line_changed(upgrade->line);
}

static void begin(struct worker_upgrade *upgrade, const struct device_record *record)
{
        int r = device_store_request_upgrade(upgrade->store, record->name);

        if (r < 0) {
                stop(upgrade, record, strerror(-r));
                return;
        }
        memcpy(upgrade->uid, record->uid, sizeof(upgrade->uid));
        upgrade->state = UPGRADE_REPLACING;
        set_limit(upgrade, REPLACE_USEC);
}

static const char *cause_of(const struct device_record *record)
{
        const struct device_status *status = &record->status;

        return status->cause     ? status->cause
               : status->message ? status->message
                                 : "The events of the device say why.";
}

/* The restart was requested: of this device, or meanwhile by a client as well. */
static void follow_replacement(struct worker_upgrade *upgrade, const struct device_record *record)
{
        const struct device_status *status = &record->status;

        if (record->restart_refused == record->restart) {
                if (status->reason
                        == REASON_CANNOT_RESTART) /* the status follows the refusal, and has its cause */
                        give_up(upgrade, record, cause_of(record));
        } else if (status->phase == PHASE_FAILED || status->phase == PHASE_BACKOFF)
                give_up(upgrade, record, cause_of(record));
        else if (status->observed_restart != record->restart || status->phase != PHASE_LIVE
                 || !status->converged)
                return;
        else if (device_status_needs_restart(status))
                give_up(upgrade, record, "Its next worker also has another version than ublkd starts now.");
        else {
                upgrade->state = UPGRADE_WATCHING;
                upgrade->restart = record->restart;
                upgrade->pid = status->worker.pid;
                set_limit(upgrade, WATCH_USEC);
        }
}

static void watch(struct worker_upgrade *upgrade, const struct device_record *record)
{
        if (record->restart != upgrade->restart) { /* a client has asked for another one */
                upgrade->state = UPGRADE_REPLACING;
                set_limit(upgrade, REPLACE_USEC);
        } else if (record->status.worker.pid != upgrade->pid)
                give_up(upgrade, record, "Its next worker ended within a second.");
}

static void follow(struct worker_upgrade *upgrade)
{
        const struct device_record *record = device_store_find_uid(upgrade->store, upgrade->uid);

        if (!record || !is_wanted(record)) /* a client has ended the disk */
                rest(upgrade, UPGRADE_IDLE);
        else if (upgrade->state == UPGRADE_REPLACING)
                follow_replacement(upgrade, record);
        else
                watch(upgrade, record);
}

/* ---- events ---- */

static int on_look(sd_event_source *source _unused_, void *userdata)
{
        struct worker_upgrade *upgrade = userdata;
        const struct device_record *due;

        refresh(upgrade);
        if (upgrade->state == UPGRADE_REPLACING || upgrade->state == UPGRADE_WATCHING)
                follow(upgrade);
        if (upgrade->state == UPGRADE_STOPPED && is_nothing_left(upgrade))
                start_again(upgrade);
        if (!upgrade->wanted || upgrade->state != UPGRADE_IDLE)
                return 0;
        due = find_due(upgrade);
        if (due)
                begin(upgrade, due);
        return 0;
}

static int on_limit(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct worker_upgrade *upgrade = userdata;
        const struct device_record *record = device_store_find_uid(upgrade->store, upgrade->uid);

        if (record && upgrade->state == UPGRADE_REPLACING)
                give_up(upgrade, record, "No other worker has served it for 60 seconds.");
        else
                rest(upgrade, UPGRADE_IDLE);
        look_again(upgrade);
        return 0;
}

static void on_store_event(void *userdata, const struct store_event *event)
{
        struct worker_upgrade *upgrade = userdata;

        if (event->kind == STORE_NOTED)
                return;
        if (event->record)
                note_device(upgrade, event->record);
        else
                upgrade_queue_remove(&upgrade->queue, event->name);
        look_again(upgrade);
}

void worker_upgrade_set(struct worker_upgrade *upgrade, bool replace)
{
        upgrade->wanted = replace;
        upgrade_queue_clear(&upgrade->queue);
        upgrade->is_stale = true;
        if (upgrade->state == UPGRADE_STOPPED)
                start_again(upgrade);
        look_again(upgrade);
}

int worker_upgrade_new(sd_event *event, struct device_store *store, struct host *host,
        struct service_line *line, struct worker_upgrade **ret)
{
        _cleanup_(worker_upgrade_free_pointer) struct worker_upgrade *upgrade = calloc(1, sizeof(*upgrade));
        int r;

        if (!upgrade)
                return -ENOMEM;
        upgrade->host = host;
        upgrade->line = line;
        upgrade->is_stale = true;
        upgrade_queue_init(&upgrade->queue);
        r = sd_event_add_defer(event, &upgrade->look, on_look, upgrade);
        if (r >= 0)
                r = sd_event_source_set_priority(upgrade->look, SD_EVENT_PRIORITY_IDLE);
        if (r >= 0)
                r = sd_event_add_time_relative(
                        event, &upgrade->limit, CLOCK_MONOTONIC, 0, 0, on_limit, upgrade);
        if (r >= 0)
                r = sd_event_source_set_enabled(upgrade->limit, SD_EVENT_OFF);
        if (r >= 0)
                r = device_store_subscribe(store, on_store_event, upgrade);
        if (r < 0)
                return r;
        upgrade->store = store;
        *ret = TAKE_PTR(upgrade);
        return 0;
}

struct worker_upgrade *worker_upgrade_free(struct worker_upgrade *upgrade)
{
        if (!upgrade)
                return NULL;
        if (upgrade->store)
                device_store_unsubscribe(upgrade->store, on_store_event, upgrade);
        sd_event_source_disable_unref(upgrade->look);
        sd_event_source_disable_unref(upgrade->limit);
        upgrade_queue_clear(&upgrade->queue);
        free(upgrade);
        return NULL;
}
