/* SPDX-License-Identifier: MIT */
/* Replies: JSON, and problems after RFC 9457. On ENOMEM a reply consists of its status alone. Each function
 * replaces an earlier reply of the request. */
#pragma once

#include "api/http/request.h"

enum problem_type {
        PROBLEM_BAD_REQUEST,
        PROBLEM_MALFORMED_JSON,
        PROBLEM_UNAUTHORIZED,
        PROBLEM_FORBIDDEN,
        PROBLEM_NO_SUCH_RESOURCE,
        PROBLEM_NO_SUCH_DEVICE,
        PROBLEM_NO_SUCH_ACTION,
        PROBLEM_METHOD_NOT_ALLOWED,
        PROBLEM_NOT_ACCEPTABLE,
        PROBLEM_BODY_TOO_SLOW,
        PROBLEM_NAME_TAKEN,
        PROBLEM_NUMBER_TAKEN,
        PROBLEM_BEING_REMOVED,
        PROBLEM_LAST_COPY,
        PROBLEM_PATH_ELSEWHERE,
        PROBLEM_IN_USE,
        PROBLEM_NOT_POSSIBLE_NOW,
        PROBLEM_COMPACTED,
        PROBLEM_PRECONDITION_FAILED,
        PROBLEM_BODY_TOO_LARGE,
        PROBLEM_NOT_JSON,
        PROBLEM_INVALID_SPEC,
        PROBLEM_CANNOT_START,
        PROBLEM_INTERNAL,
        PROBLEM_NOT_READY,
        PROBLEM_TOO_MANY_WATCHES,
        PROBLEM_NO_MEMORY,
        PROBLEM_TIMEOUT,
        PROBLEM_DATABASE_GONE,
        PROBLEM_STORE_FULL,
        PROBLEM_PATH_TOO_LONG,
        PROBLEM_EXPECTATION_FAILED,
        PROBLEM_HEADERS_TOO_LARGE,
        PROBLEM_TOO_MANY_CONNECTIONS,
        PROBLEM_INVALID_REQUEST,
        PROBLEM_RECORD_OUTDATED,
        PROBLEM_OWNED_BY_FILE,
        PROBLEM_AUTHORIZATION_BUSY,
        PROBLEM_TOO_MANY_CHANGES,
        _PROBLEM_TYPE_MAX
};

/* Generated from schemas/openapi/problems.json, which lists the same problems as the enum. */
struct problem_kind {
        unsigned status;
        const char *name, *title;
};
extern const struct problem_kind problem_kinds[_PROBLEM_TYPE_MAX];

/* Reply with `object`, which the function frees; NULL: out of memory. */
void reply_json(struct request *request, unsigned status, cJSON *object);
/* Reply with a text, which is copied. */
void reply_text(struct request *request, unsigned status, const char *content_type, const char *text);
/* Reply with a body from `read`, piece by piece, until the client or `read` ends it. */
void reply_stream(
        struct request *request, const char *content_type, MHD_ContentReaderCallback read, void *userdata);
void reply_empty(struct request *request, unsigned status);

/* Reply with a problem whose detail is the sentence of `format`. */
void reply_problem(struct request *request, enum problem_type type, const char *format, ...) _printf_(3, 4);
/* Reply with a problem that lists all `problems` in `errors`. Its detail is the first one's sentence, or
 * their number. */
void reply_problems(struct request *request, enum problem_type type, const struct problem_list *problems);
/* Reply as reply_problem(), with the reason of the device's status in `reason` and the device in `device`. */
void reply_device_problem(struct request *request, enum problem_type type, const struct device_record *record,
        const char *format, ...) _printf_(4, 5);
/* Print a problem as JSON, for when there is no request yet. `detail` must not need escapes; text beyond
 * `size` bytes is cut off. */
void problem_text(enum problem_type type, const char *detail, char *ret, size_t size);
/* Reply with a problem for -errno, "WHAT: CAUSE", where the caller knows no better type. */
void reply_error(struct request *request, int error, const char *what);

/* Reply with the device and its ETag. */
void reply_device(struct request *request, unsigned status, const struct device_record *record);

/* Reply with an answer that is shared. */
void reply_shared(struct request *request, struct shared_answer *answer);

/* Free the body of the reply. */
void reply_drop_body(struct reply *reply);

/* Free the content of the reply, and make it empty. */
void reply_clear(struct reply *reply);
