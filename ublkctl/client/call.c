/* SPDX-License-Identifier: MIT */
/* Send a request, and print the daemon's own sentences if it fails. */
#include "ublkctl/client/call.h"

#include "ublkctl/text/json_path.h"
#include "ublkctl/text/terminal.h"
#include "ublkctl/text/text.h"
#include "ublkctl/client/url.h"
#include "ublkd/base/sentence.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void begin_line(const char *about)
{
        progress_end();
        fputs("ublkctl: ", stderr);
        if (about) {
                print_safely(stderr, about);
                fputs(": ", stderr);
        }
}

void complain(const char *about, const char *format, ...)
{
        _cleanup_free_ char *text = NULL;
        va_list arguments;

        va_start(arguments, format);
        text = text_format(format, arguments);
        va_end(arguments);
        begin_line(about);
        print_safely(stderr, text ? text : "out of memory");
        fputc('\n', stderr);
}

char *device_path(const char *name, const char *rest)
{
        _cleanup_free_ char *encoded = url_encode(name);
        char *path;

        /* Every server takes "." and ".." for parts of the path, and no device has such a name. Send any
         * other name: the daemon reports whether it is valid. */
        if (!encoded
                || asprintf(&path, "/devices/%s%s",
                           strcmp(encoded, ".") == 0 || strcmp(encoded, "..") == 0 ? "%2E" : encoded, rest)
                           < 0)
                return NULL;
        return path;
}

/* ---- problems ---- */

static const struct {
        const char *kind; /* urn:ublkd:problem:… */
        long http;        /* for an unknown kind: the first row with it counts */
        enum exit_status status;
} kinds[] = {
        {.kind = "no-such-device",      .http = 404, .status = STATUS_NOT_FOUND  },
        {.kind = "no-such-action",      .http = 404, .status = STATUS_FAILED     },
        {.kind = "no-such-resource",    .http = 404, .status = STATUS_FAILED     },
        {.kind = "timeout",             .http = 504, .status = STATUS_TIMED_OUT  },
        {.kind = "unauthorized",        .http = 401, .status = STATUS_NOT_ALLOWED},
        {.kind = "forbidden",           .http = 403, .status = STATUS_NOT_ALLOWED},
        {.kind = "name-taken",          .http = 409, .status = STATUS_REFUSED    },
        {.kind = "precondition-failed", .http = 412, .status = STATUS_REFUSED    },
};

static const char type_prefix[] = "urn:ublkd:problem:";

static const char *problem_kind(const struct answer *answer)
{
        const char *type = json_text(answer->json, "type");

        if (!type || strncmp(type, type_prefix, sizeof(type_prefix) - 1) != 0)
                return "";
        return type + sizeof(type_prefix) - 1;
}

bool is_problem(const struct answer *answer, const char *kind)
{
        return answer->status >= 400 && strcmp(problem_kind(answer), kind) == 0;
}

static enum exit_status problem_status(const struct answer *answer)
{
        const char *kind = problem_kind(answer);

        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                if (strcmp(kinds[i].kind, kind) == 0)
                        return kinds[i].status;
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                if (kinds[i].http == answer->status)
                        return kinds[i].status;
        return STATUS_FAILED;
}

/* A daemon older than this program does not know the resource, or the method. */
static bool is_too_old(const struct answer *answer)
{
        return is_problem(answer, "no-such-resource") || answer->status == 405;
}

/* Print each fault of the spec with its place, unless the one sentence covers it. */
static void print_errors(const cJSON *errors, const char *detail)
{
        const cJSON *error;

        cJSON_ArrayForEach (error, errors) {
                const char *pointer = json_text(error, "pointer"), *text = json_text(error, "detail");

                if (!text || (cJSON_GetArraySize(errors) == 1 && sentence_equal(text, detail)))
                        continue;
                fputs("  ", stderr);
                print_safely(stderr, pointer && *pointer ? pointer : "/");
                fputs(": ", stderr);
                print_safely(stderr, text);
                fputc('\n', stderr);
        }
}

/* Print the place of a single fault, before its sentence. */
static void print_single_pointer(const cJSON *errors)
{
        const char *pointer =
                cJSON_GetArraySize(errors) == 1 ? json_text(cJSON_GetArrayItem(errors, 0), "pointer") : NULL;

        if (pointer && *pointer) {
                print_safely(stderr, pointer);
                fputs(": ", stderr);
        }
}

enum exit_status report_problem(const struct request *request, const char *about, const struct answer *answer)
{
        const char *detail = json_text(answer->json, "detail"), *title = json_text(answer->json, "title");
        const cJSON *errors = json_find(answer->json, "errors");

        if (is_too_old(answer)) {
                complain(about, "This ublkd does not offer %s %.*s; update it if it is older than ublkctl.",
                        request->method, (int)strcspn(request->path, "?"), request->path);
                return STATUS_FAILED;
        }
        if (!detail) {
                complain(about,
                        "ublkd answered with HTTP status %ld without an explanation; look at its log.",
                        answer->status);
                return problem_status(answer);
        }
        begin_line(about);
        print_single_pointer(errors);
        print_safely(stderr, cJSON_GetArraySize(errors) > 1 && title ? title : detail);
        fputc('\n', stderr);
        print_errors(errors, detail);
        return problem_status(answer);
}

enum exit_status call(
        struct context *context, const struct request *request, const char *about, struct answer *ret)
{
        struct answer answer;
        enum exit_status status = client_ask(context->client, request, false, &answer);

        if (status != STATUS_OK)
                return status;
        if (answer.status < 400) {
                *ret = answer;
                return STATUS_OK;
        }
        status = report_problem(request, about, &answer);
        answer_clear(&answer);
        return status;
}

enum exit_status call_get(struct context *context, const char *name, struct answer *ret)
{
        _cleanup_free_ char *path = device_path(name, "");
        struct request request = {.method = "GET", .path = path};

        return path ? call(context, &request, name, ret) : STATUS_FAILED;
}

enum exit_status for_each_name(struct context *context, int argc, char *argv[],
        enum exit_status (*verb)(struct context *context, const char *name))
{
        enum exit_status status = STATUS_OK;

        for (int i = 0; i < argc; i++) {
                enum exit_status one = verb(context, argv[i]);

                status = exit_status_merge(status, one);
                if (one == STATUS_NO_DAEMON)
                        break; /* the next names would fail in the same way */
        }
        return status;
}
