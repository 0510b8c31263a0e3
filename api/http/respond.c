/* SPDX-License-Identifier: MIT */
/* Replies: JSON, and problems after RFC 9457. */
#include "api/http/respond.h"

#include "api/http/etag.h"
#include "api/http/shared_answer.h"
#include "api/http/view.h"

#include "ublkd/base/utf8.h"
#include "ublkd/values/json_print.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char type_json[] = "application/json", type_problem[] = "application/problem+json";

void reply_clear(struct reply *reply)
{
        reply_drop_body(reply);
        *reply = (struct reply){};
}

void reply_drop_body(struct reply *reply)
{
        if (!reply->shared)
                free(reply->body);
        reply->shared = shared_answer_unref(reply->shared);
        reply->body = NULL;
}

static void set_reply(struct request *request, unsigned status, const char *content_type, char *body)
{
        bool close = request->reply.close;

        reply_clear(&request->reply);
        request->reply.status = status;
        request->reply.content_type = content_type;
        request->reply.body = body;
        request->reply.close = close;
}

/* Out of memory for a body: the status alone must do. */
static void reply_no_memory(struct request *request)
{
        set_reply(request, problem_kinds[PROBLEM_NO_MEMORY].status, type_problem, NULL);
}

/* End the text with a newline, for people at a terminal. Free it and return NULL on ENOMEM; NULL stays NULL. */
static char *end_line(char *text)
{
        size_t length = text ? strlen(text) : 0;
        char *longer;

        if (!text || (length > 0 && text[length - 1] == '\n'))
                return text;
        longer = realloc(text, length + 2);
        if (!longer) {
                free(text);
                return NULL;
        }
        memcpy(longer + length, "\n", 2);
        return longer;
}

static void reply_object(struct request *request, unsigned status, const char *content_type, cJSON *object)
{
        char *body = end_line(object ? json_print(object) : NULL);

        cJSON_Delete(object);
        if (!body) {
                reply_no_memory(request);
                return;
        }
        utf8_repair(body);
        set_reply(request, status, content_type, body);
}

void reply_json(struct request *request, unsigned status, cJSON *object)
{
        reply_object(request, status, type_json, object);
}

void reply_text(struct request *request, unsigned status, const char *content_type, const char *text)
{
        char *body = end_line(strdup(text));

        if (body)
                set_reply(request, status, content_type, body);
        else
                reply_no_memory(request);
}

void reply_shared(struct request *request, struct shared_answer *answer)
{
        set_reply(request, MHD_HTTP_OK, answer->content_type, answer->body);
        request->reply.shared = shared_answer_ref(answer);
        strcpy(request->reply.etag, answer->etag);
}

void reply_stream(
        struct request *request, const char *content_type, MHD_ContentReaderCallback read, void *userdata)
{
        set_reply(request, MHD_HTTP_OK, content_type, NULL);
        request->reply.read = read;
        request->reply.userdata = userdata;
}

void reply_empty(struct request *request, unsigned status)
{
        set_reply(request, status, NULL, NULL);
}

static cJSON *problem_object(const struct request *request, enum problem_type type, const char *detail)
{
        const struct problem_kind *kind = &problem_kinds[type];
        cJSON *object = cJSON_CreateObject();
        char urn[64];

        snprintf(urn, sizeof(urn), "urn:ublkd:problem:%s", kind->name);
        if (object && cJSON_AddStringToObject(object, "type", urn)
                && cJSON_AddStringToObject(object, "title", kind->title)
                && cJSON_AddNumberToObject(object, "status", kind->status)
                && cJSON_AddStringToObject(object, "detail", detail)
                && cJSON_AddStringToObject(object, "instance", request->path))
                return object;
        cJSON_Delete(object);
        return NULL;
}

void problem_text(enum problem_type type, const char *detail, char *ret, size_t size)
{
        const struct problem_kind *kind = &problem_kinds[type];

        snprintf(ret, size,
                "{\"type\":\"urn:ublkd:problem:%s\",\"title\":\"%s\",\"status\":%u,\"detail\":\"%s\","
                "\"instance\":\"/\"}\n",
                kind->name, kind->title, kind->status, detail);
}

/* Takes over `detail`. */
static void reply_problem_text(struct request *request, enum problem_type type, char *detail,
        cJSON *(*more)(cJSON *object, const void *from), const void *from)
{
        cJSON *object = detail ? problem_object(request, type, detail) : NULL;

        if (object && more)
                object = more(object, from);
        free(detail);
        reply_object(request, problem_kinds[type].status, type_problem, object);
}

static _printf_(1, 0) char *format_text(const char *format, va_list arguments)
{
        char *text;

        return vasprintf(&text, format, arguments) < 0 ? NULL : text;
}

void reply_problem(struct request *request, enum problem_type type, const char *format, ...)
{
        va_list arguments;
        char *detail;

        va_start(arguments, format);
        detail = format_text(format, arguments);
        va_end(arguments);
        reply_problem_text(request, type, detail, NULL, NULL);
}

static bool add_error(cJSON *errors, const struct problem *problem)
{
        cJSON *item = cJSON_CreateObject();

        if (!item || !cJSON_AddItemToArray(errors, item)) {
                cJSON_Delete(item);
                return false;
        }
        return cJSON_AddStringToObject(item, "pointer", problem->pointer)
               && cJSON_AddStringToObject(item, "detail", problem->detail)
               && cJSON_AddStringToObject(item, "reason", problem->reason);
}

/* Return `object`; or free it and return NULL on ENOMEM. */
static cJSON *add_errors(cJSON *object, const void *from)
{
        const struct problem_list *problems = from;
        cJSON *errors = cJSON_AddArrayToObject(object, "errors");
        bool good = errors != NULL;

        for (size_t i = 0; good && i < problems->count; i++)
                good = add_error(errors, &problems->items[i]);
        if (good)
                return object;
        cJSON_Delete(object);
        return NULL;
}

void reply_problems(struct request *request, enum problem_type type, const struct problem_list *problems)
{
        size_t count = problems->count + problems->dropped;
        char *detail;
        int n;

        if (count == 1)
                n = asprintf(&detail, "%s", problems->items[0].detail);
        else
                n = asprintf(&detail, "The request has %zu faults; `errors` lists %s.", count,
                        problems->dropped ? "the first of them" : "them");
        reply_problem_text(request, type, n < 0 ? NULL : detail, add_errors, problems);
}

struct shown_device {
        const struct device_record *record;
        enum reader reader;
};

static cJSON *add_device(cJSON *object, const void *from)
{
        const struct shown_device *shown = from;
        const char *reason = device_status_reason(&shown->record->status);
        cJSON *device = device_record_to_json(shown->record, shown->reader);

        if (device && cJSON_AddStringToObject(object, "reason", reason)
                && cJSON_AddItemToObject(object, "device", device))
                return object;
        cJSON_Delete(device);
        cJSON_Delete(object);
        return NULL;
}

void reply_device_problem(struct request *request, enum problem_type type, const struct device_record *record,
        const char *format, ...)
{
        va_list arguments;
        char *detail;

        va_start(arguments, format);
        detail = format_text(format, arguments);
        va_end(arguments);
        reply_problem_text(request, type, detail, add_device,
                &(const struct shown_device){.record = record, .reader = view_reader(request)});
}

void reply_error(struct request *request, int error, const char *what)
{
        if (error == -ENOMEM)
                reply_no_memory(request);
        else if (error == -ENOSPC)
                reply_problem(request, PROBLEM_STORE_FULL,
                        "%s: the file system of the database is full. Nothing was changed; make room in "
                        "the state directory of ublkd and try again.",
                        what);
        else if (error == -ENOLINK)
                reply_problem(request, PROBLEM_DATABASE_GONE,
                        "%s: the database was deleted or moved away. Nothing was changed. Restart ublkd: "
                        "disks stay in service, and 'ublkctl adopt --all' takes them over.",
                        what);
        else
                reply_problem(
                        request, PROBLEM_INTERNAL, "%s: %s. Nothing was changed.", what, strerror(-error));
}

void reply_device(struct request *request, unsigned status, const struct device_record *record)
{
        reply_json(request, status, device_record_to_json(record, view_reader(request)));
        if (request->reply.status != status)
                return;
        etag_set_device(request, record);
        request->reply.generation = record->generation;
}
