/* SPDX-License-Identifier: MIT */
/* One HTTP request, from its headers to its reply. */
#include "api/http/request.h"

#include "api/http/accept.h"
#include "api/http/hold.h"
#include "api/http/permission.h"
#include "ublkd/values/json_check.h"
#include "api/http/precondition.h"
#include "api/http/readers_rest.h"
#include "api/http/respond.h"
#include "api/http/routes.h"
#include "api/http/server.h"
#include "ublkd/base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *request_header(const struct request *request, const char *name)
{
        return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

static enum method parse_method(const char *text)
{
        static const struct {
                const char *name;
                enum method method;
        } methods[] = {
                {"GET",     METHOD_GET    },
                {"HEAD",    METHOD_GET    }, /* the HTTP library leaves out the body */
                {"POST",    METHOD_POST   },
                {"PUT",     METHOD_PUT    },
                {"PATCH",   METHOD_PATCH  },
                {"DELETE",  METHOD_DELETE },
                {"OPTIONS", METHOD_OPTIONS},
        };

        for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
                if (strcmp(methods[i].name, text) == 0)
                        return methods[i].method;
        return _METHOD_INVALID;
}

/* Return the length that the headers announce, in bytes; 0 if they announce none. */
static uint64_t announced_length(const struct request *request)
{
        const char *text = request_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);

        return text ? strtoull(text, NULL, 10) : 0;
}

static void reply_no_such_resource(struct request *request)
{
        size_t length = strlen(request->path);
        char name[PATH_NAME_MAX], item[PATH_NAME_MAX], allow[ALLOW_MAX];
        _cleanup_free_ char *path = strndup(request->path, length > 0 ? length - 1 : 0);
        const struct route *route;

        if (path && length > 1 && request->path[length - 1] == '/'
                && route_find(request->api->routes, path, request->method, &route, name, item, allow)
                           != -ENOENT)
                reply_problem(request, PROBLEM_NO_SUCH_RESOURCE,
                        "No such resource; leave out the slash at the end: %s.", path);
        else
                reply_problem(
                        request, PROBLEM_NO_SUCH_RESOURCE, "No such resource; GET /openapi.json lists all.");
}

static bool check_route(struct request *request)
{
        char allow[ALLOW_MAX];
        int r = route_find(request->api->routes, request->path, request->method, &request->route,
                request->name, request->item, allow);

        if (r == -ENOENT)
                reply_no_such_resource(request);
        if (strcmp(request->path, "*") == 0 && request->method == METHOD_OPTIONS) {
                reply_empty(request, MHD_HTTP_NO_CONTENT);
                route_methods(request->reply.allow);
                return false;
        }
        if (r == -EPERM && request->method == METHOD_OPTIONS) {
                reply_empty(request, MHD_HTTP_NO_CONTENT);
                strcpy(request->reply.allow, allow);
        } else if (r == -EPERM) {
                reply_problem(request, PROBLEM_METHOD_NOT_ALLOWED, "The method is not allowed here; use %s.",
                        allow);
                strcpy(request->reply.allow, allow);
        }
        if (r < 0)
                return false;
        return permission_check_change(request);
}

struct accepting {
        struct accept accept;
        const char *type;
};

static enum MHD_Result on_accept(
        void *userdata, enum MHD_ValueKind kind _unused_, const char *name, const char *value)
{
        struct accepting *accepting = userdata;

        if (strcasecmp(name, MHD_HTTP_HEADER_ACCEPT) == 0)
                accept_read(&accepting->accept, value ? value : "", accepting->type);
        return MHD_YES;
}

unsigned request_likes(const struct request *request, const char *type)
{
        struct accepting accepting = {.type = type};

        (void)MHD_get_connection_values(request->connection, MHD_HEADER_KIND, on_accept, &accepting);
        return accept_quality(&accepting.accept);
}

static bool check_accept(struct request *request)
{
        const char *const *type = request->route->produces;

        for (; *type; type++)
                if (request_likes(request, *type) > 0)
                        return true;
        if (type == request->route->produces) /* the route has no answers with a body */
                return true;
        reply_problem(request, PROBLEM_NOT_ACCEPTABLE,
                "Cannot answer in an accepted type; answers here are %s, so accept that.",
                request->route->produces[0]);
        return false;
}

static bool check_headers(struct request *request)
{
        static const char json[] = "application/json", merge_patch[] = "application/merge-patch+json";
        const char *type = request_header(request, MHD_HTTP_HEADER_CONTENT_TYPE);
        bool patches = request->route->flags & ROUTE_MERGE_PATCH;

        if (!check_accept(request))
                return false;
        if ((request->route->flags & ROUTE_BODY) && type && !media_type_is(type, strlen(type), json)
                && !(patches && media_type_is(type, strlen(type), merge_patch))) {
                reply_problem(request, PROBLEM_NOT_JSON,
                        "The Content-Type is not supported here; send the body as %s.",
                        patches ? merge_patch : json);
                return false;
        }
        return true;
}

static bool check_query(struct request *request)
{
        _cleanup_problems_ struct problem_list problems = {};
        int r = query_parse(request->connection, request->route->parameters, &request->query, &problems);

        if (r == -EINVAL)
                reply_problems(request, PROBLEM_BAD_REQUEST, &problems);
        else if (r < 0)
                reply_error(request, r, "Cannot read the request");
        return r >= 0;
}

static void reply_too_large(struct request *request)
{
        reply_problem(
                request, PROBLEM_BODY_TOO_LARGE, "The body is too large; %d bytes are the limit.", BODY_MAX);
}

/* Many users may send requests that wait for polkit or for their turn, and what they send is kept meanwhile. */
static bool must_be_short(const struct request *request)
{
        return request->permission == PERMISSION_WANTED
               || (tenant_is_set(request->peer.tenant) && !peer_may_change(&request->peer));
}

static void reply_too_large_for_user(struct request *request)
{
        reply_problem(request, PROBLEM_BODY_TOO_LARGE,
                "The body is too large for a request of a user without rights; %d bytes are the limit. Send "
                "less at once, or send it as root or as an administrator.",
                BODY_ASKING_MAX);
}

/* A client that nothing allows to change devices yet learns nothing of what is wrong with its request. */
static void check_content(struct request *request)
{
        if (request->permission != PERMISSION_WANTED && check_headers(request))
                (void)check_query(request);
}

/* Return whether to answer before the body arrives, because ublkd will not read it. */
static bool must_not_come(const struct request *request)
{
        return announced_length(request) > BODY_DRAIN_MAX || request_header(request, MHD_HTTP_HEADER_EXPECT);
}

static int grow_body(struct request *request, size_t size)
{
        size_t wanted = request->body_allocated ? request->body_allocated : 4096;
        char *body;

        while (wanted < size)
                wanted *= 2;
        if (wanted == request->body_allocated)
                return 0;
        body = realloc(request->body, wanted);
        if (!body)
                return -ENOMEM;
        request->body = body;
        request->body_allocated = wanted;
        return 0;
}

/* Append a piece of the body, which ends at body_size. */
static void keep_body(struct request *request, const char *data, size_t size)
{
        int r = grow_body(request, request->body_size + 1);

        if (r < 0) {
                reply_error(request, r, "Cannot read the body");
                return;
        }
        memcpy(request->body + request->body_size - size, data, size);
        request->body[request->body_size] = '\0';
}

int request_receive(struct request *request, const char *data, size_t size)
{
        request->body_size += size;
        if (request->body_size > BODY_DRAIN_MAX) {
                reply_too_large(request);
                request->reply.close = true;
                return -EMSGSIZE;
        }
        if (request->reply.status != 0 || !(request->route->flags & ROUTE_BODY))
                return 0; /* drained: request_finish() refuses it, if there is no reply yet */
        if (request->body_size > BODY_MAX)
                reply_too_large(request);
        else if (must_be_short(request) && request->body_size > BODY_ASKING_MAX)
                reply_too_large_for_user(request);
        else
                keep_body(request, data, size);
        return 0;
}

/* Ask api->admit() once for each request: a request that it suspended runs when it is resumed. */
static bool is_admitted(struct request *request)
{
        bool asked = request->admitted;

        request->admitted = true;
        return asked || !request->api->admit || request->api->admit(request);
}

/* Return the pause after work for this request that began then. Clients that may change devices need not rest. */
static uint64_t pause_after(const struct request *request, struct own_time began)
{
        return connection_is_privileged(request->client)
                       ? 0
                       : readers_rest_pause(&request->api->readers_rest, began);
}

/* The same for api->take_turn(). In its turn, all wait for its head as well. */
static bool has_turn(struct request *request)
{
        bool asked = request->in_turn;

        request->in_turn = true;
        if (!asked && request->api->take_turn && !request->api->take_turn(request))
                return false;
        readers_rest_add(&request->api->readers_rest, request->head_pause, monotonic_now());
        request->head_pause = 0;
        return true;
}

/* Count work for this request in its turn that began then. */
static void count_work(struct request *request, struct own_time began)
{
        readers_rest_add(&request->api->readers_rest, pause_after(request, began), monotonic_now());
}

static void check_head(struct request *request)
{
        if (permission_check_token(request) && permission_check_reader(request) && check_route(request))
                check_content(request);
        if (must_be_short(request) && announced_length(request) > BODY_ASKING_MAX)
                reply_too_large_for_user(request);
        if (announced_length(request) > BODY_MAX) {
                reply_too_large(request);
                request->reply.close = must_not_come(request);
        } else if (request->reply.status != 0 && request_header(request, MHD_HTTP_HEADER_EXPECT)) {
                request->reply.close = true; /* the client waits for an interim answer, not for this one */
        }
}

/* Its account waits for that, also if it is refused. */
void request_begin(struct request *request, const char *method)
{
        struct readers_rest *rest = &request->api->readers_rest;
        struct own_time began = readers_rest_begin(rest);

        request->method = parse_method(method);
        check_head(request);
        request->head_pause = pause_after(request, began);
        readers_rest_add_to(rest, request->peer.account, request->head_pause, monotonic_now());
}

static void ask_permission(struct request *request)
{
        struct own_time began = readers_rest_begin(&request->api->readers_rest);

        request->api->ask_permission(request);
        count_work(request, began);
}

/* Return whether the request may run, as far as polkit decides that. False: it has a reply, waits, or is abandoned. */
static bool is_permitted(struct request *request)
{
        if (request->permission == PERMISSION_WANTED && has_turn(request))
                ask_permission(request);
        if (request->suspended || request->abandoned)
                return false;
        if (request->reply.status == 0
                && (request->permission == PERMISSION_REFUSED
                        || request->permission == PERMISSION_UNANSWERED))
                permission_refuse(request);
        if (request->permission == PERMISSION_GRANTED) {
                request->permission = PERMISSION_USED;
                check_content(request);
        }
        return request->reply.status == 0;
}

static void run(struct request *request)
{
        struct own_time began = readers_rest_begin(&request->api->readers_rest);

        request->route->handle(request);
        if (!request->suspended)
                precondition_apply(request);
        count_work(request, began);
}

void request_finish(struct request *request)
{
        if (request->reply.status == 0 && !is_permitted(request))
                return;
        if (request->reply.status == 0 && !(request->route->flags & ROUTE_BODY) && request->body_size > 0)
                reply_problem(request, PROBLEM_BAD_REQUEST,
                        "The request has a body, and takes none; leave it out.");
        if (request->reply.status == 0 && !is_admitted(request))
                return;
        if (has_turn(request) && request->reply.status == 0)
                run(request);
}

cJSON *request_parse_body(struct request *request)
{
        struct json_fault fault;
        cJSON *document;

        if (request->body_size == 0) {
                reply_problem(request, PROBLEM_MALFORMED_JSON, "The body is missing; send a JSON object.");
                return NULL;
        }
        if (json_check(request->body, request->body_size, &fault) < 0) {
                reply_problem(request, PROBLEM_MALFORMED_JSON, "Line %zu, column %zu: %s.", fault.line,
                        fault.column, fault.what);
                return NULL;
        }
        document = cJSON_ParseWithLength(request->body, request->body_size);
        if (!document) /* json_check() accepted it, so memory ran out */
                reply_error(request, -ENOMEM, "Cannot read the body");
        return document;
}

struct request *request_free(struct request *request)
{
        if (!request)
                return NULL;
        if (request->hold)
                request->hold->kind->free(request->hold);
        query_clear(&request->query);
        reply_clear(&request->reply);
        free(request->path);
        free(request->host_path);
        free(request->body);
        free(request->cgroup);
        free(request);
        return NULL;
}
