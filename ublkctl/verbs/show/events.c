/* SPDX-License-Identifier: MIT */
/* events: show what happened, and follow what happens. A stream that breaks off is resumed. */
#include "ublkctl/client/event_list.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/text/json_safe.h"
#include "ublkctl/client/sse.h"
#include "ublkctl/text/yaml.h"
#include "ublkctl/client/url.h"
#include "ublkctl/verbs.h"

#include "ublkd/values/json_print.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { RETRY_MS = 2000 };

struct events {
        struct context *context;
        char *const *names; /* devices to show */
        int count;          /* 0: all */
        struct sse *sse;
};

static bool is_wanted(const struct events *events, const cJSON *event)
{
        const char *name = json_text(event, "device.name");

        for (int i = 0; i < events->count; i++)
                if (name && strcmp(events->names[i], name) == 0)
                        return true;
        return events->count == 0;
}

/* Print an event. False: the output is closed. */
static bool show(const struct events *events, const cJSON *event)
{
        char *text;

        if (!is_wanted(events, event))
                return true;
        if (events->context->settings->output == OUTPUT_YAML) { /* a stream of documents */
                puts("---");
                yaml_print(stdout, event);
        } else if (events->context->settings->output != OUTPUT_JSON) {
                print_event(events->context, event, events->context->settings->output == OUTPUT_WIDE);
        } else {
                text = json_print(event);
                json_print_safely(stdout, text ? text : "{}");
                cJSON_free(text);
        }
        return fflush(stdout) == 0 && !ferror(stdout);
}

static bool on_event(void *userdata, const char *data)
{
        cJSON *event = cJSON_Parse(data);
        bool goes_on = !event || show(userdata, event);

        cJSON_Delete(event);
        return goes_on;
}

static bool on_piece(void *userdata, const char *data, size_t size)
{
        const struct events *events = userdata;

        return sse_feed(events->sse, data, size);
}

/* The daemon filters by one name; several are filtered here. */
static const char *asked_device(const struct events *events)
{
        return events->count == 1 ? events->names[0] : NULL;
}

static char *stream_path(const struct events *events, uint64_t after)
{
        char text[32], *path = strdup("/events");

        snprintf(text, sizeof(text), "%" PRIu64, after);
        path = path ? url_add_parameter(path, "after", text) : NULL;
        return path && asked_device(events) ? url_add_parameter(path, "device", asked_device(events)) : path;
}

/* Follow one connection until it ends. *ret_compacted: the daemon has dropped later events, so there is a
 * gap. */
static enum exit_status stream(struct events *events, uint64_t after, bool *ret_compacted)
{
        _cleanup_free_ char *path = stream_path(events, after);
        const char *last = sse_last_id(events->sse);
        struct request request = {.method = "GET",
                .path = path,
                .take = on_piece,
                .last_event_id = *last ? last : NULL,
                .userdata = events};
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status;

        sse_restart(events->sse);
        status = path ? client_ask(events->context->client, &request, true, &answer) : STATUS_FAILED;
        *ret_compacted = status == STATUS_OK && answer.status == 410;
        if (status != STATUS_OK || answer.status < 400 || *ret_compacted)
                return status;
        return report_problem(&request, NULL, &answer);
}

/* Show the kept events after `after`. *ret_revision: where the stream resumes. */
static enum exit_status list(struct events *events, uint64_t after, uint64_t *ret_revision)
{
        const cJSON *event;
        cJSON *kept = NULL;
        enum exit_status status =
                fetch_events(events->context, asked_device(events), after, 0, false, &kept, ret_revision);

        cJSON_ArrayForEach (event, kept)
                if (!show(events, event))
                        break;
        cJSON_Delete(kept);
        return status;
}

/* A daemon that disappears after it has returned the list is probably being updated: wait for it. */
static enum exit_status follow(struct events *events, uint64_t revision)
{
        enum exit_status status = STATUS_OK;
        bool compacted;

        while (!ferror(stdout)) {
                status = stream(events, revision, &compacted);
                if (compacted) {
                        complain(NULL, "Some events are missing here; more have happened than ublkd keeps.");
                        sse_free(events->sse);
                        events->sse = sse_new(on_event, events);
                        status = events->sse ? list(events, 0, &revision) : STATUS_FAILED;
                        if (status != STATUS_OK)
                                return status;
                        continue;
                }
                if (status != STATUS_OK && status != STATUS_NO_DAEMON && status != STATUS_TIMED_OUT)
                        return status;
                if (!ferror(stdout))
                        (void)poll(NULL, 0, (int)sse_retry_ms(events->sse, RETRY_MS));
        }
        return status;
}

/* Return STATUS_OK for a device that exists, and for one that was removed and has kept events. */
static enum exit_status check_name(struct context *context, const char *name)
{
        _cleanup_free_ char *path = device_path(name, "");
        struct request request = {.method = "GET", .path = path};
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status =
                path ? client_ask(context->client, &request, false, &answer) : STATUS_FAILED;
        cJSON *kept = NULL;
        bool known;

        if (status != STATUS_OK || answer.status < 400)
                return status;
        if (is_problem(&answer, "no-such-device")) {
                status = fetch_events(context, name, 0, 1, false, &kept, NULL);
                known = cJSON_GetArraySize(kept) > 0;
                cJSON_Delete(kept);
                if (status != STATUS_OK || known)
                        return status;
        }
        return report_problem(&request, name, &answer);
}

enum exit_status verb_events(struct context *context, int argc, char *argv[])
{
        struct events events = {.context = context, .names = argv, .count = argc};
        uint64_t revision = 0;
        enum exit_status status;

        status = for_each_name(context, argc, argv, check_name);
        if (status != STATUS_OK)
                return status;
        events.sse = sse_new(on_event, &events);
        if (!events.sse)
                return STATUS_FAILED;
        status = list(&events, context->settings->since, &revision);
        if (status == STATUS_OK && context->settings->follow)
                status = follow(&events, revision);
        sse_free(events.sse);
        return status;
}
