/* SPDX-License-Identifier: MIT */
/* GET /events: a stream, or a list (newest first) for a client that accepts JSON only. */
#include "api/resources/handlers.h"
#include "api/held/event_filter.h"
#include "api/http/respond.h"
#include "api/http/sharing.h"
#include "api/http/server.h"
#include "api/http/view.h"
#include "api/held/watch.h"

#include "ublkd/values/json_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct event_log *log_of(const struct request *request)
{
        return device_store_events(request->api->config.store);
}

/* Check that the stream can resume after a revision: the log still has the events since then, and has given
 * it out. */
static bool check_position(struct request *request, uint64_t revision)
{
        uint64_t compacted = view_compacted(request),
                 newest = device_store_revision(request->api->config.store);

        if (revision >= compacted && revision <= newest)
                return true;
        reply_problem(request, PROBLEM_COMPACTED,
                "%s %" PRIu64 "%s: list again with GET /devices, and resume from its `revision`.",
                revision < compacted ? "Events after revision" : "The revision", revision,
                revision < compacted ? " are no longer all kept" : " is not one of this ublkd");
        return false;
}

/* ---- the list ---- */

static bool add_item(cJSON *items, const struct device_event *event, enum reader reader)
{
        cJSON *item = device_event_to_json(event, reader);

        if (item && cJSON_AddItemToArray(items, item))
                return true;
        cJSON_Delete(item);
        return false;
}

/* Return the index of the newest event below `end` that matches, plus one; 0: none. */
static size_t next_match(const struct request *request, uint64_t after, size_t end)
{
        const struct query *query = &request->query;

        for (size_t i = end; i > 0; i--) {
                const struct device_event *event = event_log_at(log_of(request), i - 1);

                if (event->revision <= after)
                        return 0;
                if (view_has_event(request, event) && event_filter_matches(query, event))
                        return i;
        }
        return 0;
}

static bool add_page(const struct request *request, cJSON *object, uint64_t after, size_t end)
{
        cJSON *items = cJSON_AddArrayToObject(object, "items");
        unsigned count = 0;
        char token[32];

        for (size_t i = next_match(request, after, end), next; items && i > 0; i = next) {
                const struct device_event *event = event_log_at(log_of(request), i - 1);

                next = next_match(request, after, i - 1);
                if (!add_item(items, event, view_reader(request)))
                        return false;
                snprintf(token, sizeof(token), "%" PRIu64, event->revision);
                if (++count == request->query.limit && next > 0)
                        return cJSON_AddStringToObject(object, "continue", token) != NULL;
        }
        return items != NULL;
}

static void list_events(struct request *request, uint64_t after)
{
        const struct query *query = &request->query;
        size_t end = event_log_count(log_of(request));
        uint64_t before = 0; /* revision of the last event on the previous page */
        bool may_share = !request_header(request, "Last-Event-ID"); /* which is not in the target */
        cJSON *object;

        if (may_share && sharing_reply(request))
                return;
        if (query->continue_after && query_parse_revision(query->continue_after, &before) < 0) {
                reply_problem(request, PROBLEM_COMPACTED,
                        "continue does not come from a page of events; begin with the first page again.");
                return;
        }
        if (query->continue_after)
                end = before > 0 ? event_log_after(log_of(request), before - 1) : 0;
        object = cJSON_CreateObject();
        if (object && add_page(request, object, after, end)
                && json_add_integer(object, "revision", device_store_revision(request->api->config.store))) {
                reply_json(request, MHD_HTTP_OK, object);
                if (may_share)
                        sharing_keep(request);
                return;
        }
        cJSON_Delete(object);
        reply_error(request, -ENOMEM, "Cannot make the list");
}

/* ---- the stream ---- */

/* Find the revision to resume after: the Last-Event-ID of a client that was disconnected (newer than its
 * URL), the parameter, or `otherwise`. False: there is a reply. */
static bool find_position(struct request *request, uint64_t otherwise, uint64_t *ret)
{
        const char *last = request_header(request, "Last-Event-ID");
        const struct query *query = &request->query;

        *ret = query->given & QUERY_AFTER ? query->after : otherwise;
        if (last && query_parse_revision(last, ret) < 0) {
                reply_problem(request, PROBLEM_BAD_REQUEST,
                        "Last-Event-ID is not a number; send the id of an event of this stream.");
                return false;
        }
        return (!last && !(query->given & QUERY_AFTER)) || check_position(request, *ret);
}

static void stream_events(struct request *request)
{
        uint64_t revision;

        if (request->query.given & (QUERY_LIMIT | QUERY_CONTINUE))
                reply_problem(request, PROBLEM_BAD_REQUEST,
                        "'limit' and 'continue' apply to the list of events only; request it with 'Accept: "
                        "application/json'.");
        else if (find_position(request, device_store_revision(request->api->config.store), &revision))
                watch_begin(request, revision);
}

void handle_events(struct request *request)
{
        uint64_t revision;

        unsigned stream = request_likes(request, "text/event-stream");

        if (stream > 0 && stream >= request_likes(request, "application/json"))
                stream_events(request);
        else if (find_position(request, event_log_compacted(log_of(request)), &revision))
                list_events(request, revision);
}
