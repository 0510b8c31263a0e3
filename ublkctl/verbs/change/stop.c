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

enum { LOOK_AGAIN_MS = 500 }; /* each look may cost ublkd a search of all processes */

static void print_done(const char *name, const char *done)
{
        print_safely(stdout, name);
        printf(" %s\n", done);
}

/* Return the path of the request, which the caller frees; NULL on ENOMEM. */
static char *stop_path(const struct context *context, const char *name, uint64_t left)
{
        char rest[WAIT_QUERY_SIZE + 64];

        snprintf(rest, sizeof(rest), "/stop?drop-last-copy=%s",
                context->settings->drop_last_copy ? "true" : "false");
        if (!context->settings->no_wait)
                snprintf(rest + strlen(rest), sizeof(rest) - strlen(rest),
                        "&wait=ready&timeout=%" PRIu64 "ms", wait_limit(left) / 1000);
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
        _cleanup_free_ char *path = stop_path(context, name, left);
        struct request request = {
                .method = "POST", .path = path, .patience = context->settings->no_wait ? 0 : left};
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

/* Stop the disks of all tenants in the same time: one that is in use keeps no other waiting. */
static enum exit_status stop_those_of_tenants(struct context *context)
{
        uint64_t deadline = monotonic_now() + context->settings->timeout;
        cJSON *devices = NULL;
        enum exit_status status = fetch_devices(context, &(struct text_list){}, &devices);

        while (cJSON_GetArraySize(devices) > 0) {
                cJSON *device, *next;

                for (device = devices->child; device; device = next) {
                        enum exit_status one = STATUS_OK;

                        next = device->next;
                        if (is_disk_of_tenant(device)
                                && try_to_stop(context, json_text(device, "name"), deadline, &one))
                                continue;
                        status = exit_status_merge(status, one);
                        cJSON_Delete(cJSON_DetachItemViaPointer(devices, device));
                }
                if (devices->child)
                        wait_to_look_again(deadline);
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
