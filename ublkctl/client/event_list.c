/* SPDX-License-Identifier: MIT */
/* Fetch the events that ublkd keeps, and print them. */
#include "ublkctl/client/event_list.h"

#include "ublkctl/text/json_path.h"
#include "ublkctl/text/terminal.h"
#include "ublkctl/text/times.h"
#include "ublkctl/client/url.h"
#include "ublkd/base/printable.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DESCRIBED_MAX = 10, PAGE_MAX = 500 };

static char *page_path(const char *device, uint64_t after, size_t limit, const char *continue_after)
{
        char *path = NULL;

        if (asprintf(&path, "/events?limit=%zu", limit && limit < PAGE_MAX ? limit : PAGE_MAX) < 0)
                return NULL;
        if (device)
                path = url_add_parameter(path, "device", device);
        if (path && after > 0) {
                char text[32];

                snprintf(text, sizeof(text), "%" PRIu64, after);
                path = url_add_parameter(path, "after", text);
        }
        return path && continue_after ? url_add_parameter(path, "continue", continue_after) : path;
}

/* Put the events of a page (newest first) in front of `all`. */
static void take_page(cJSON *all, cJSON *page, size_t limit)
{
        cJSON *items = cJSON_GetObjectItemCaseSensitive(page, "items"), *event;

        while ((limit == 0 || (size_t)cJSON_GetArraySize(all) < limit)
                && (event = cJSON_DetachItemFromArray(items, 0)))
                cJSON_InsertItemInArray(all, 0, event);
}

static enum exit_status ask_page(struct context *context, const char *path, bool quiet, struct answer *ret)
{
        struct request request = {.method = "GET", .path = path};
        enum exit_status status;

        if (!path)
                return STATUS_FAILED;
        status = client_ask(context->client, &request, quiet, ret);
        if (status != STATUS_OK || ret->status < 400)
                return status;
        if (quiet)
                return STATUS_FAILED;
        if (!is_problem(ret, "compacted"))
                return report_problem(&request, NULL, ret);
        complain(NULL, "--since: ublkd does not know this revision, or does not keep all events after it; "
                       "leave --since out, or give a revision that 'ublkctl events -o wide' shows.");
        return STATUS_FAILED;
}

enum exit_status fetch_events(struct context *context, const char *device, uint64_t after, size_t limit,
        bool quiet, cJSON **ret, uint64_t *ret_revision)
{
        _cleanup_free_ char *continue_after = NULL;
        cJSON *all = cJSON_CreateArray();
        enum exit_status status;
        uint64_t revision = 0;

        if (!all)
                return STATUS_FAILED;
        do {
                _cleanup_free_ char *path = page_path(device, after, limit, continue_after);
                _cleanup_answer_ struct answer answer = {};
                const char *next;

                status = ask_page(context, path, quiet, &answer);
                if (status != STATUS_OK)
                        break;
                take_page(all, answer.json, limit);
                if (revision == 0) /* of the first page: later events are in the stream after it */
                        revision = (uint64_t)json_number(answer.json, "revision", 0);
                next = json_text(answer.json, "continue");
                free(continue_after);
                continue_after = next ? strdup(next) : NULL;
                if (next && !continue_after)
                        status = STATUS_FAILED;
        } while (continue_after && (limit == 0 || (size_t)cJSON_GetArraySize(all) < limit));
        if (status != STATUS_OK) {
                cJSON_Delete(all);
                return status;
        }
        *ret = all;
        if (ret_revision)
                *ret_revision = revision;
        return STATUS_OK;
}

static void print_padded(const char *text, int width)
{
        _cleanup_free_ char *copy = strdup(text ? text : "-");

        if (copy)
                make_printable(copy);
        printf("%-*s  ", width, copy ? copy : "?");
}

/* On a terminal with the age. */
static void print_time(const struct context *context, const char *time)
{
        char text[TIME_SHOWN_SIZE], age[AGE_SIZE];

        time_show(time, context->terminal, text);
        print_padded(text, context->terminal ? 19 : 24);
        if (!context->terminal)
                return;
        time_age(time, age);
        print_padded(age, 6);
}

void print_event(const struct context *context, const cJSON *event, bool revision)
{
        const char *type = json_text(event, "type"), *message = json_text(event, "message");
        double count = json_number(event, "count", 1);
        bool warning = type && strcmp(type, "Warning") == 0;
        char first[TIME_SHOWN_SIZE];

        if (revision)
                printf("%8.0f  ", json_number(event, "revision", 0));
        print_time(context, json_text(event, "lastTime"));
        fputs(warning && context->colours ? paint_begin(PAINT_BAD) : "", stdout);
        print_padded(type, 7);
        fputs(warning && context->colours ? paint_end() : "", stdout);
        print_padded(json_text(event, "device.name"), 12);
        print_padded(json_text(event, "reason"), 16);
        print_safely(stdout, message ? message : "");
        if (count > 1) {
                time_show(json_text(event, "firstTime"), context->terminal, first);
                printf(" (%.0f times since ", count);
                print_safely(stdout, first);
                putchar(')');
        }
        putchar('\n');
}

/* Return whether the event is of the device with this uid; NULL: of any. */
static bool is_of(const cJSON *event, const char *uid)
{
        const char *text = json_text(event, "device.uid");

        return !uid || (text && strcmp(text, uid) == 0);
}

void print_device_events(struct context *context, const char *device, const char *uid)
{
        bool any = false;
        const cJSON *event;
        cJSON *events;

        /* Events of earlier devices of this name are older than all of this device. */
        if (fetch_events(context, device, 0, DESCRIBED_MAX, true, &events, NULL) != STATUS_OK)
                return;
        cJSON_ArrayForEach (event, events)
                any |= is_of(event, uid);
        puts(any ? "Events:" : "Events:         none");
        cJSON_ArrayForEach (event, events)
                if (is_of(event, uid)) {
                        fputs("  ", stdout);
                        print_event(context, event, false);
                }
        cJSON_Delete(events);
}
