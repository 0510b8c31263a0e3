/* SPDX-License-Identifier: MIT */
/* stop and start: take a disk down until the next boot, and create it again. The spec does not change. */
#include "ublkctl/verbs/change/stop.h"

#include "ublkctl/text/amounts.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/text/terminal.h"
#include "ublkctl/text/times.h"
#include "ublkctl/verbs/change/remove.h"
#include "ublkctl/verbs/show/await.h"
#include "ublkctl/verbs/show/removal.h"
#include "ublkctl/verbs/show/show.h"
#include "ublkctl/verbs.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
        LOOK_AGAIN_MS = 500, /* each look may cost ublkd a search of all processes */
        AT_ONCE = 64,        /* requests that get the same time for their answers */
};

/* One of those of `stop --tenants`. */
struct tenant_disk {
        const char *name; /* in the list of devices */
        char *path;
        struct request request; /* the last one, and its answer; 0: none yet */
        struct answer answer;
        bool accepted; /* ublkd takes the disk down */
        bool ended;    /* nothing is left to ask */
};

static void print_done(const char *name, const char *done)
{
        print_safely(stdout, name);
        printf(" %s\n", done);
}

/* Return the path of the request, which the caller frees; NULL on ENOMEM. `wait`: how long the answer waits for the end of
 * the disk, in microseconds; 0: not at all. */
static char *stop_path(const struct context *context, const char *name, uint64_t wait)
{
        char rest[WAIT_QUERY_SIZE + 64];

        snprintf(rest, sizeof(rest), "/stop?drop-last-copy=%s",
                context->settings->drop_last_copy ? "true" : "false");
        if (wait > 0)
                snprintf(rest + strlen(rest), sizeof(rest) - strlen(rest),
                        "&wait=ready&timeout=%" PRIu64 "ms", wait_limit(wait) / 1000);
        return device_path(name, rest);
}

static enum exit_status judge(const struct context *context, const struct request *request, const char *name,
        enum exit_status status, const struct answer *answer)
{
        if (status != STATUS_OK || answer->status < 400
                || (context->settings->ignore_missing && is_problem(answer, "no-such-device")))
                return status;
        return report_problem(request, name, answer);
}

static void format_timeout(uint64_t usec, char ret[static AGE_SIZE])
{
        char text[AMOUNT_TEXT_SIZE];

        if (usec % USEC_PER_SEC == 0) {
                format_age((int64_t)(usec / USEC_PER_SEC), ret);
                return;
        }
        format_nanoseconds((double)usec * 1000, text);
        snprintf(ret, AGE_SIZE, "%s", text);
}

/* Print how long the disk was waited for, and who uses it now. False: it is unused by now, or that is not known. */
static bool print_still_used(struct context *context, const char *name)
{
        const char *users = NULL, *disk = NULL;
        cJSON *foreseen = NULL;
        char waited[AGE_SIZE];
        bool was_printed;

        if (removal_foresee(context, name, true, &foreseen) == STATUS_OK) {
                users = removal_users(foreseen);
                disk = json_text(foreseen, "disk");
        }
        format_timeout(context->settings->timeout, waited);
        was_printed = users && disk;
        if (was_printed)
                complain(name,
                        "The disk was not stopped: after %s (--timeout) %s is still in use: %s; end that use "
                        "and repeat, or wait longer.",
                        waited, disk, users);
        cJSON_Delete(foreseen);
        return was_printed;
}

static void wait_to_look_again(uint64_t deadline)
{
        uint64_t now = monotonic_now(), left = deadline > now ? (deadline - now + 999) / 1000 : 0;

        (void)poll(NULL, 0, left < LOOK_AGAIN_MS ? (int)left : LOOK_AGAIN_MS);
}

/* Report that the disk is still in use after all of the time. */
static enum exit_status give_up(
        struct context *context, const struct request *request, const char *name, const struct answer *answer)
{
        return print_still_used(context, name) ? STATUS_REFUSED : report_problem(request, name, answer);
}

/* Return whether the disk is in use and the options say to wait longer for that; else *ret_status is how the stop ended. */
static bool try_to_stop(
        struct context *context, const char *name, uint64_t deadline, enum exit_status *ret_status)
{
        uint64_t now = monotonic_now(), left = deadline > now ? deadline - now : 1;
        uint64_t wait = context->settings->no_wait ? 0 : left;
        _cleanup_free_ char *path = stop_path(context, name, wait);
        struct request request = {.method = "POST", .path = path, .patience = wait};
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status =
                path ? client_ask(context->client, &request, false, &answer) : STATUS_FAILED;
        bool waits = status == STATUS_OK && context->settings->when_unused && is_problem(&answer, "in-use");

        if (waits && now < deadline)
                return true;
        status = waits ? give_up(context, &request, name, &answer)
                       : judge(context, &request, name, status, &answer);
        if (status == STATUS_OK)
                print_done(name, answer.status == 404         ? "does not exist"
                                 : context->settings->no_wait ? "is being stopped"
                                                              : "stopped");
        *ret_status = status;
        return false;
}

static enum exit_status stop_one(struct context *context, const char *name)
{
        uint64_t deadline = monotonic_now() + context->settings->timeout;
        enum exit_status status;

        while (try_to_stop(context, name, deadline, &status))
                wait_to_look_again(deadline);
        return status;
}

static bool is_disk_of_tenant(const cJSON *device)
{
        return json_text(device, "name") && json_text(device, "tenant") && json_text(device, "status.device");
}

static bool is_gone(const struct answer *answer)
{
        return is_problem(answer, "no-such-device")
               || (answer->status < 400 && !json_text(answer->json, "status.device")
                       && device_is_ready(answer->json));
}

/* Make the next request: to stop the disk, or, once ublkd is doing that, where it is. No answer waits for the disk. Return
 * false on ENOMEM. */
static bool prepare(const struct context *context, struct tenant_disk *disk, uint64_t deadline)
{
        uint64_t now = monotonic_now();

        free(disk->path);
        disk->path = disk->accepted ? device_path(disk->name, "") : stop_path(context, disk->name, 0);
        disk->request = (struct request){.method = disk->accepted ? "GET" : "POST",
                .path = disk->path,
                .patience = context->settings->no_wait ? 0
                            : deadline > now           ? deadline - now
                                                       : 1};
        return disk->path;
}

/* Judge the answer to the last request. Return how the stop has ended; STATUS_OK also if it has not. */
static enum exit_status judge_answer(
        const struct context *context, struct tenant_disk *disk, enum exit_status status)
{
        const struct answer *answer = &disk->answer;
        bool asks_again = disk->accepted ? answer->status >= 500
                                         : context->settings->when_unused && is_problem(answer, "in-use");

        if (status == STATUS_OK && asks_again)
                return STATUS_OK;
        if (status == STATUS_OK && is_gone(answer)) {
                disk->ended = true;
                print_done(disk->name, answer->status == 404 ? "does not exist" : "stopped");
        } else if (status != STATUS_OK || answer->status >= 400) {
                disk->ended = true;
                return status != STATUS_OK ? status : report_problem(&disk->request, disk->name, answer);
        } else {
                disk->accepted = true;
                disk->ended = context->settings->no_wait;
                if (disk->ended)
                        print_done(disk->name, "is being stopped");
        }
        return STATUS_OK;
}

/* Send a request for each disk that is left, until the deadline. */
static enum exit_status ask_for_all(
        struct context *context, struct tenant_disk *disks, size_t count, uint64_t deadline)
{
        enum exit_status status = STATUS_OK;
        size_t next = 0;

        while (next < count && (context->settings->no_wait || monotonic_now() < deadline)) {
                struct tenant_disk *asked[AT_ONCE];
                struct request requests[AT_ONCE];
                struct answer answers[AT_ONCE] = {};
                enum exit_status statuses[AT_ONCE];
                size_t n = 0;

                for (; next < count && n < AT_ONCE; next++) {
                        if (disks[next].ended)
                                continue;
                        if (!prepare(context, &disks[next], deadline)) {
                                disks[next].ended = true;
                                status = exit_status_merge(status, STATUS_FAILED);
                                continue;
                        }
                        asked[n] = &disks[next];
                        requests[n++] = disks[next].request;
                }
                client_ask_all(context->client, requests, n, statuses, answers);
                for (size_t i = 0; i < n; i++) {
                        answer_clear(&asked[i]->answer);
                        asked[i]->answer = answers[i];
                        status = exit_status_merge(status, judge_answer(context, asked[i], statuses[i]));
                }
        }
        return status;
}

static bool are_all_ended(const struct tenant_disk *disks, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (!disks[i].ended)
                        return false;
        return true;
}

/* Report a disk that is left after all of the time, by what is known of it: a look at its users would take longer. */
static enum exit_status report_left(const struct tenant_disk *disk)
{
        const char *message = disk->accepted ? device_message(disk->answer.json) : "";

        if (is_problem(&disk->answer, "in-use"))
                return report_problem(&disk->request, disk->name, &disk->answer);
        if (disk->accepted) {
                complain(disk->name, "The disk was not gone within --timeout%s%s", *message ? ": " : ".",
                        message);
                print_in_force(disk->name);
        } else
                complain(disk->name, "--timeout has passed before the turn of the disk; repeat the command.");
        return STATUS_TIMED_OUT;
}

/* Stop the disks of all tenants in the same time: one that is in use, or does not go, keeps no other waiting. */
static enum exit_status stop_those_of_tenants(struct context *context)
{
        uint64_t deadline = monotonic_now() + context->settings->timeout;
        _cleanup_free_ struct tenant_disk *disks = NULL;
        size_t count = 0;
        cJSON *devices = NULL, *device;
        enum exit_status status = fetch_devices(context, &(struct text_list){}, &devices);

        if (status == STATUS_OK)
                disks = calloc((size_t)cJSON_GetArraySize(devices) + 1, sizeof(*disks));
        if (status == STATUS_OK && !disks)
                status = STATUS_FAILED;
        if (disks)
                cJSON_ArrayForEach (device, devices)
                        if (is_disk_of_tenant(device))
                                disks[count++].name = json_text(device, "name");
        do {
                status = exit_status_merge(status, ask_for_all(context, disks, count, deadline));
                if (!are_all_ended(disks, count))
                        wait_to_look_again(deadline);
        } while (!are_all_ended(disks, count) && monotonic_now() < deadline);
        for (size_t i = 0; i < count; i++) {
                if (!disks[i].ended)
                        status = exit_status_merge(status, report_left(&disks[i]));
                answer_clear(&disks[i].answer);
                free(disks[i].path);
        }
        cJSON_Delete(devices);
        return status;
}

enum exit_status start_device(struct context *context, const char *name)
{
        uint64_t deadline = monotonic_now() + context->settings->timeout;
        _cleanup_free_ char *path = device_path(name, "/start");
        struct request request = {.method = "POST", .path = path};
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status = path ? call(context, &request, name, &answer) : STATUS_FAILED;

        if (status == STATUS_OK && !context->settings->no_wait)
                status = await_live(context, name, deadline);
        if (status == STATUS_OK)
                print_done(name, context->settings->no_wait ? "is being started" : "is Live");
        return status;
}

enum exit_status verb_stop(struct context *context, int argc, char *argv[])
{
        if (context->settings->tenants ? argc > 0 : argc == 0) {
                complain(NULL, "stop: give names, or --tenants alone; 'ublkctl list' has the names.");
                return STATUS_USAGE;
        }
        return context->settings->tenants ? stop_those_of_tenants(context)
                                          : for_each_name(context, argc, argv, stop_one);
}

enum exit_status verb_start(struct context *context, int argc, char *argv[])
{
        return for_each_name(context, argc, argv, start_device);
}
