/* SPDX-License-Identifier: MIT */
/* Wait for devices, with a line of progress on a terminal. */
#include "ublkctl/verbs/show/await.h"

#include "ublkctl/client/device_watch.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/text/terminal.h"
#include "ublkctl/text/times.h"
#include "ublkctl/verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
        LOOK_AGAIN = 2 * USEC_PER_SEC,    /* not everything is an event: a new generation that is observed */
        HOST_PATIENCE = USEC_PER_SEC / 2, /* a ublkd that has just started does not know the driver yet */
};

#define DAEMON_TIMEOUT_MAX (UINT64_C(600) * 1000 * 1000) /* GET /host: limits.waitSeconds */

const char *device_node(const cJSON *device)
{
        const char *private_node = json_text(device, "status.node");

        return private_node ? private_node : json_text(device, "status.device");
}

const char *device_message(const cJSON *device)
{
        const char *message = json_text(json_condition(device, "Ready"), "message");

        return message ? message : "";
}

void warn_of_path(const char *about, const cJSON *device)
{
        const cJSON *condition = json_condition(device, "StablePath");
        const char *status = json_text(condition, "status"), *message = json_text(condition, "message");

        if (status && message && strcmp(status, "False") == 0)
                complain(about, "%s", message);
}

bool print_why(const char *about, const cJSON *device)
{
        const char *cause = json_text(device, "status.cause");

        cause = cause ? cause : device_message(device);
        if (*cause)
                complain(about, "%s", cause);
        return *cause;
}

bool device_is_ready(const cJSON *device)
{
        bool without =
                cJSON_IsFalse(json_find(device, "spec.enabled")) || device_has_reason(device, "Stopped");
        const char *phase = json_text(device, "status.phase"), *wanted = without ? "Disabled" : "Live";

        return phase && strcmp(phase, wanted) == 0
               && json_number(device, "status.observedGeneration", 0) >= json_number(device, "generation", 0);
}

static void show(const struct watch *watch, const cJSON *device)
{
        const char *phase = json_text(device, "status.phase"), *message = device_message(device);
        _cleanup_free_ char *line = NULL;

        if (asprintf(&line, "%s: %s, waiting until it is %s (%d s) %s", watch->name, phase ? phase : "gone",
                    watch->goal, (int)((monotonic_now() - watch->began) / USEC_PER_SEC), message)
                < 0) {
                line = NULL;
                return;
        }
        progress_show(line);
}

bool device_has_reason(const cJSON *device, const char *reason)
{
        const cJSON *condition;

        cJSON_ArrayForEach (condition, json_find(device, "status.conditions")) {
                const char *text = json_text(condition, "reason");

                if (text && strcmp(text, reason) == 0)
                        return true;
        }
        return false;
}

/* Return whether the host is the cause: the driver is missing, or ublkd may not use it. Nothing done to this
 * device helps. */
static bool waits_for_the_host(const cJSON *device)
{
        return device_has_reason(device, "HostNotReady");
}

/* Return whether the path leads to another store: only the administrator can decide. */
static bool waits_for_consent(const cJSON *device)
{
        const char *reason = json_text(json_condition(device, "Ready"), "reason"),
                   *phase = json_text(device, "status.phase");

        return reason && phase && strcmp(reason, "BackingChanged") == 0 && strcmp(phase, "Failed") == 0;
}

uint64_t wait_limit(uint64_t usec)
{
        return usec < DAEMON_TIMEOUT_MAX ? usec : DAEMON_TIMEOUT_MAX;
}

void wait_query(const struct context *context, bool wait, const char *what, char ret[static WAIT_QUERY_SIZE])
{
        *ret = '\0';
        if (wait)
                snprintf(ret, WAIT_QUERY_SIZE, "?%s&timeout=%" PRIu64 "ms", what,
                        wait_limit(context->settings->timeout) / 1000);
}

void print_in_force(const char *name)
{
        complain(name, "The request stays in force, and ublkd carries it out when the cause is gone.");
}

bool watch_or_end(void *userdata)
{
        struct watch *watch = userdata;
        _cleanup_free_ char *path = device_path(watch->name, "");
        struct request request = {.method = "GET", .path = path};
        _cleanup_answer_ struct answer answer = {};
        const cJSON *device = NULL;

        if (path && client_ask(watch->context->client, &request, true, &answer) == STATUS_OK)
                device = answer.status == 200 ? answer.json : NULL;
        watch->host_down = waits_for_the_host(device);
        if (watch->host_down)
                complain(watch->name, "%s", device_message(device));
        else if (watch->context->progress)
                show(watch, device);
        return !watch->host_down;
}

/* Return whether openers keep the disk, which may last. */
static bool waits_for_openers(const cJSON *device)
{
        return device_has_reason(device, "InUse") || device_has_reason(device, "StillHeld");
}

/* Print once what the wait is for, and how long it lasts at most: the line of progress has no room for the openers, and
 * there is none without a terminal. */
static void announce(struct watch *watch, const cJSON *device, uint64_t deadline)
{
        uint64_t now = monotonic_now(), left = deadline > now ? deadline - now : 0;
        char at_most[AGE_SIZE];

        if (watch->announced || !waits_for_openers(device))
                return;
        watch->announced = true;
        format_age((int64_t)((left + USEC_PER_SEC - 1) / USEC_PER_SEC), at_most);
        progress_end();
        complain(watch->name, "%s ublkctl waits until the device is %s, %s at most (--timeout).",
                device_message(device), watch->goal, at_most);
}

static bool show_status(void *userdata)
{
        struct watch *watch = userdata;
        _cleanup_free_ char *path = device_path(watch->name, "");
        struct request request = {.method = "GET", .path = path};
        _cleanup_answer_ struct answer answer = {};

        if (path && client_ask(watch->context->client, &request, true, &answer) == STATUS_OK)
                show(watch, answer.status == 200 ? answer.json : NULL);
        return true;
}

bool (*watch_tick(const struct context *context))(void *userdata)
{
        return context->progress ? show_status : NULL;
}

static enum exit_status time_is_over(const struct watch *watch, const cJSON *device)
{
        const char *phase = json_text(device, "status.phase");

        complain(watch->name, "The device is not %s in time (it is %s); wait longer with --timeout. %s",
                watch->goal, phase ? phase : "there", device_message(device));
        return STATUS_TIMED_OUT;
}

/* Return whether to give up, after a time that counts from the first device of this deadline. */
static bool is_given_up(const struct watch *watch, const cJSON *device, uint64_t deadline)
{
        if (watch->fail_fast
                && waits_for_consent(device)) /* long enough for an attempt that was just requested */
                return monotonic_now() >= watch->began + HOST_PATIENCE;
        return watch->fail_fast && waits_for_the_host(device)
               && monotonic_now() + watch->context->settings->timeout >= deadline + HOST_PATIENCE;
}

/* Look once. True: the wait is over, with *ret_status. */
static bool look(struct watch *watch, enum wait_for goal, uint64_t deadline, enum exit_status *ret_status)
{
        _cleanup_free_ char *path = device_path(watch->name, "");
        struct request request = {.method = "GET", .path = path};
        _cleanup_answer_ struct answer answer = {};

        *ret_status = path ? client_ask(watch->context->client, &request, false, &answer) : STATUS_FAILED;
        if (*ret_status != STATUS_OK)
                return true;
        if (goal == WAIT_FOR_GONE && answer.status == 404)
                return true;
        if (answer.status >= 400) {
                *ret_status = report_problem(&request, watch->name, &answer);
                return true;
        }
        if (goal == WAIT_FOR_LIVE && device_is_ready(answer.json))
                return true;
        if (is_given_up(watch, answer.json, deadline)) {
                complain(watch->name, "%s", device_message(answer.json));
                print_in_force(watch->name);
                *ret_status = STATUS_FAILED;
                return true;
        }
        if (monotonic_now() >= deadline) {
                *ret_status = time_is_over(watch, answer.json);
                return true;
        }
        announce(watch, answer.json, deadline);
        if (watch->context->progress)
                show(watch, answer.json);
        return false;
}

static enum exit_status await(struct watch *watch, enum wait_for goal, uint64_t deadline)
{
        struct device_watch *events = device_watch_new(watch->context, watch->name);
        enum exit_status status = STATUS_FAILED;

        while (events && !look(watch, goal, deadline, &status)) {
                uint64_t now = monotonic_now(), left = deadline > now ? deadline - now : 0;
                uint64_t pause = now < watch->began + HOST_PATIENCE ? HOST_PATIENCE : LOOK_AGAIN;

                device_watch_await(events, left < pause ? left : pause, watch_tick(watch->context), watch);
        }
        device_watch_free(events);
        progress_end();
        return status;
}

enum exit_status await_device(
        struct context *context, const char *name, enum wait_for goal, uint64_t deadline)
{
        struct watch watch = {.context = context,
                .name = name,
                .goal = goal == WAIT_FOR_LIVE ? "Live" : "gone",
                .began = monotonic_now()};

        return await(&watch, goal, deadline);
}

enum exit_status await_live(struct context *context, const char *name, uint64_t deadline)
{
        struct watch watch = {.context = context,
                .name = name,
                .goal = "Live",
                .began = monotonic_now(),
                .fail_fast = true};

        return await(&watch, WAIT_FOR_LIVE, deadline);
}

enum exit_status verb_wait(struct context *context, int argc, char *argv[])
{
        uint64_t deadline = monotonic_now() + context->settings->timeout;
        enum exit_status status = STATUS_OK;

        for (int i = 0; i < argc; i++)
                status = exit_status_merge(
                        status, await_device(context, argv[i], context->settings->wait_for, deadline));
        return status;
}
