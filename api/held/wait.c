/* SPDX-License-Identifier: MIT */
/* Hold the reply of a request until its device is ready or gone, or until the view of the host is fresh. */
#include "api/held/wait.h"

#include "api/held/disk_check.h"
#include "api/http/hold.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "api/http/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
        USERS_USEC = 2 * 1000 * 1000, /* extra time after the timeout, to find the openers of the disk */
        HOST_USEC = 2 * 1000 * 1000,  /* limit for a view of the host; then the reply shows the last one */
};

struct wait {
        struct hold hold; /* first member */
        enum wait_kind kind;
        char *name;                     /* of the device; NULL with WAIT_HOST. Owned */
        char uid[UID_TEXT_SIZE];        /* a later device of the same name is another one */
        uint64_t generation;            /* ready: the device must have observed it */
        uint64_t asked;                 /* the same, for the recovery asked for */
        uint32_t restart;               /* the same, for the restart asked for */
        bool restarts;                  /* ready: wait for that restart */
        unsigned status;                /* ready: status of the reply */
        struct disk_question *question; /* gone: the wait is over, and this finds the openers */
        sd_event_source *timer;
};

static struct wait *wait_of(struct hold *hold)
{
        return (struct wait *)hold;
}

static void drop_pending(struct wait *wait)
{
        wait->question = disk_question_free(wait->question);
        wait->timer = sd_event_source_disable_unref(wait->timer);
}

static struct hold *wait_free(struct hold *hold)
{
        struct wait *wait = wait_of(hold);

        if (!wait)
                return NULL;
        hold_release(hold);
        drop_pending(wait);
        free(wait->name);
        free(wait);
        return NULL;
}

static const struct hold_kind wait_kind = {.free = wait_free};

/* Resume the request, whose reply is set. */
static void wait_end(struct wait *wait)
{
        drop_pending(wait);
        hold_end(&wait->hold);
}

/* Return whether a status that is not Live is final for the client. The death of a worker, or a kernel that
 * does not answer, says nothing about the spec: the next attempt may succeed. */
static bool is_verdict(const struct device_status *status)
{
        if (status->phase == PHASE_FAILED)
                return true;
        if (status->phase == PHASE_LIVE && status->reason == REASON_CANNOT_GROW)
                return true;
        return status->phase == PHASE_BACKOFF && status->reason != REASON_NONE
               && !reason_info(status->reason)->transient;
}

static const char *status_message(const struct request *request, const struct device_status *status)
{
        const char *message = device_status_message(status, view_reader(request));

        return message && *message ? message : device_phase_to_string(status->phase);
}

bool wait_is_ready(const struct device_record *record)
{
        if (record->spec && !device_record_enabled(record))
                return record->status.phase == PHASE_DISABLED;
        return record->status.phase == PHASE_LIVE && record->status.converged;
}

/* A disk in service with its old size is recovered nevertheless. */
static bool is_over(const struct wait *wait, const struct device_record *record)
{
        return wait_is_ready(record)
               || (wait->kind == WAIT_RECOVERED && record->status.phase == PHASE_LIVE
                       && record->status.reason == REASON_CANNOT_GROW);
}

/* If the wait is over, set the reply and return true. `record` is NULL if the device is gone. */
static bool check_ready(const struct wait *wait, const struct device_record *record)
{
        struct request *request = wait->hold.request;
        unsigned status = wait->status;

        if (!record || record->deleting) {
                reply_problem(request, PROBLEM_BEING_REMOVED,
                        "The device was removed while this request waited for it.");
                return true;
        }
        if (record->status.observed_generation < wait->generation
                || record->status.observed_restart < wait->restart
                || record->status.observed_asked < wait->asked)
                return false;
        if (wait->restarts && wait->kind != WAIT_RECOVERED
                && record->status.reason == REASON_CANNOT_RESTART) {
                reply_device_problem(request, PROBLEM_CANNOT_START, record, "%s",
                        status_message(wait->hold.request, &record->status));
                return true;
        }
        if (is_over(wait, record)) {
                reply_device(request, status, record);
                if (status == MHD_HTTP_CREATED)
                        snprintf(request->reply.location, sizeof(request->reply.location), "/devices/%s",
                                record->name);
                return true;
        }
        if (wait->kind == WAIT_RECOVERED || record->stopped || !is_verdict(&record->status))
                return false;
        reply_device_problem(request, PROBLEM_CANNOT_START, record,
                record->status.phase == PHASE_LIVE
                        ? "%s" /* the disk is in service, and the sentence says what to do */
                        : "%s The device is kept, and ublkd retries; correct the cause, or the spec.",
                status_message(wait->hold.request, &record->status));
        return true;
}

static bool check_gone(struct request *request, const struct device_record *record)
{
        if (record)
                return false;
        reply_empty(request, MHD_HTTP_NO_CONTENT);
        return true;
}

static bool wait_check(struct wait *wait, const struct device_record *record)
{
        return wait->kind == WAIT_GONE ? check_gone(wait->hold.request, record) : check_ready(wait, record);
}

void wait_on_store_event(void *userdata, const struct store_event *event)
{
        struct api *api = userdata;

        for (struct hold *hold = hold_first(api, &wait_kind), *next; hold; hold = next) {
                struct wait *wait = wait_of(hold);

                next = hold_next(hold);
                if (wait->kind != WAIT_HOST && strcmp(wait->uid, event->uid) == 0
                        && wait_check(wait, event->record))
                        wait_end(wait);
        }
}

/* `users`: the openers of the disk; NULL: none, or unknown. */
static void reply_timeout(struct wait *wait, const struct disk_answer *users)
{
        _cleanup_free_ char *text = users ? disk_answer_for(wait->hold.request, users) : NULL;
        const struct device_record *record =
                device_store_get(wait->hold.request->api->config.store, wait->name);

        if (!record) /* not reached: a removal ends the wait */
                reply_problem(wait->hold.request, PROBLEM_TIMEOUT,
                        "The state of the device is unknown; read it again.");
        else if (users)
                reply_device_problem(wait->hold.request, PROBLEM_TIMEOUT, record,
                        "The device is not gone yet (%s); the request stays in force. %s /dev/ublkb%d is "
                        "in use: %s.",
                        device_phase_to_string(record->status.phase),
                        status_message(wait->hold.request, &record->status), users->number,
                        text ? text : "out of memory");
        else
                reply_device_problem(wait->hold.request, PROBLEM_TIMEOUT, record,
                        "The device is not %s yet (%s); the request stays in force. %s",
                        wait->kind == WAIT_GONE ? "gone" : "ready",
                        device_phase_to_string(record->status.phase),
                        status_message(wait->hold.request, &record->status));
}

static void on_users(void *userdata, const struct disk_answer *answer)
{
        struct wait *wait = userdata;

        reply_timeout(wait, answer->use == DISK_USED ? answer : NULL);
        wait_end(wait);
}

/* Ask for the openers that delay a removal: the kernel waits until the last of them has closed the disk.
 * Return true if the answer ends the wait, or the timer does so earlier. */
static bool ask_users(struct wait *wait)
{
        const struct api *api = wait->hold.request->api;
        const struct device_record *record;

        if (wait->kind != WAIT_GONE || wait->question || !api->config.disk_search)
                return false;
        record = device_store_get(api->config.store, wait->name);
        return record && record->number >= 0 && record->status.disk
               && sd_event_source_set_time_relative(wait->timer, USERS_USEC) >= 0
               && sd_event_source_set_enabled(wait->timer, SD_EVENT_ONESHOT) >= 0
               && disk_search_ask(api->config.disk_search, record->number, DISK_NAMES, on_users, wait,
                          &wait->question)
                          >= 0;
}

/* Let the request run again: one of a client that may not change devices takes another turn. */
static void go_on_with_host(struct wait *wait)
{
        wait->hold.request->host_seen = true;
        wait->hold.request->in_turn = false;
        wait_end(wait);
}

static int on_timeout(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct wait *wait = userdata;

        if (ask_users(wait))
                return 0;
        if (wait->kind == WAIT_HOST) {
                go_on_with_host(wait);
                return 0;
        }
        reply_timeout(wait, NULL);
        wait_end(wait);
        return 0;
}

/* Suspend the request and start the timer. 0; -errno: `wait` is freed. */
static int wait_start(struct wait *wait, struct request *request, uint64_t timeout)
{
        int r = sd_event_add_time_relative(
                request->api->event, &wait->timer, CLOCK_MONOTONIC, timeout, 1000, on_timeout, wait);

        if (r >= 0)
                r = hold_attach(&wait->hold, &wait_kind, request);
        if (r >= 0)
                hold_suspend(&wait->hold);
        else
                wait_free(&wait->hold);
        return r;
}

static struct wait *wait_new(
        struct request *request, enum wait_kind kind, const struct device_record *record, unsigned status)
{
        struct wait *wait = calloc(1, sizeof(*wait));

        if (!wait)
                return NULL;
        *wait = (struct wait){.hold.request = request,
                .kind = kind,
                .generation = record->generation,
                .restart = record->restart,
                .asked = record->asked,
                .restarts = record->status.observed_restart < record->restart,
                .status = status};
        strcpy(wait->uid, record->uid);
        wait->name = strdup(record->name);
        if (wait->name)
                return wait;
        wait_free(&wait->hold);
        return NULL;
}

void wait_begin(
        struct request *request, enum wait_kind kind, const struct device_record *record, unsigned status)
{
        struct wait *wait = wait_new(request, kind, record, status);
        int r = -ENOMEM;

        if (wait && wait_check(wait, record)) {
                wait_free(&wait->hold);
                return;
        }
        if (wait)
                r = wait_start(wait, request, request->query.timeout);
        if (r < 0)
                reply_error(request, r, "The request is in force, but ublkd cannot wait for it");
}

int wait_begin_host(struct request *request)
{
        struct wait *wait = calloc(1, sizeof(*wait));

        if (!wait)
                return -ENOMEM;
        wait->kind = WAIT_HOST;
        return wait_start(wait, request, HOST_USEC);
}

void wait_host_seen(struct api *api)
{
        for (struct hold *hold = hold_first(api, &wait_kind), *next; hold; hold = next) {
                next = hold_next(hold);
                if (wait_of(hold)->kind == WAIT_HOST)
                        go_on_with_host(wait_of(hold));
        }
}

size_t wait_count(const struct api *api)
{
        return hold_count(api, &wait_kind);
}
