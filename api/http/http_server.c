/* SPDX-License-Identifier: MIT */
/* HTTP on the supervisor's loop.
 *
 * libmicrohttpd runs without threads and without a listening socket. Its epoll descriptor is one event source
 * here, its next deadline another. The server accepts connections itself and hands them to the library, so
 * one server answers on any number of sockets. At the limit of connections it stops accepting, and new
 * clients wait in the backlog. */
#include "api/http/server.h"

#include "api/http/head_check.h"
#include "api/http/hold.h"
#include "api/http/readers_rest.h"
#include "api/http/respond.h"
#include "api/http/routes.h"
#include "api/http/shared_answer.h"
#include "api/http/sharing.h"
#include "ublkd/base/log.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <strings.h>
#include <sys/socket.h>

/* A strict libmicrohttpd before 1.0 answers a missing Host itself, and sends the head of that answer twice;
 * head_check.c covers what strictness is for. From 1.0 on it must be strict, or it repairs folded lines and
 * spaces before ublkd sees them. */
#if MHD_VERSION >= 0x01000000
#define LIBRARY_STRICTNESS 1
#else
#define LIBRARY_STRICTNESS 0
#endif

enum {
        CONNECTION_SECONDS = 30,
        CONNECTION_MEMORY = 64 * 1024, /* headers, receive buffer and send buffer */
        STREAM_BLOCK = 8 * 1024,
        ACCEPT_AT_ONCE = 4, /* then other events get their turn */
        ACCEPT_PAUSE_USEC = 1000 * 1000,
        FULL_PAUSE_USEC = 100 * 1000,
        PASSED_FD = 3, /* SD_LISTEN_FDS_START */
};

/* Keep names as the client sent them: routes and query decode them after they have split them. */
static size_t keep_escapes(void *userdata _unused_, struct MHD_Connection *connection _unused_, char *text)
{
        return strlen(text);
}

static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
        return !value || !*value || MHD_add_response_header(response, name, value) == MHD_YES;
}

/* RFC 5789: the type that PATCH takes, for a client that asks for the methods or sent another type. NULL:
 * leave the header out. */
static const char *accepted_patch(const struct request *request)
{
        bool refused = request->reply.status == MHD_HTTP_UNSUPPORTED_MEDIA_TYPE && request->route
                       && (request->route->flags & ROUTE_MERGE_PATCH);

        return refused || strstr(request->reply.allow, "PATCH") ? "application/merge-patch+json" : NULL;
}

static void on_shared_sent(void *userdata)
{
        shared_answer_unref(userdata);
}

/* Return a response that owns the body of the reply; NULL on ENOMEM. */
static struct MHD_Response *make_response(struct reply *reply, size_t size)
{
        struct MHD_Response *response;

        if (reply->read)
                return MHD_create_response_from_callback(
                        MHD_SIZE_UNKNOWN, STREAM_BLOCK, reply->read, reply->userdata, NULL);
        if (size == 0)
                return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
        response = reply->shared ? MHD_create_response_from_buffer_with_free_callback_cls(
                                           size, reply->body, on_shared_sent, reply->shared)
                                 : MHD_create_response_from_buffer(size, reply->body, MHD_RESPMEM_MUST_FREE);
        if (response) {
                reply->body = NULL;
                reply->shared = NULL;
        }
        return response;
}

static enum MHD_Result send_reply(struct request *request)
{
        struct reply *reply = &request->reply;
        size_t size = reply->body ? strlen(reply->body) : 0;
        struct MHD_Response *response = make_response(reply, size);
        enum MHD_Result result = MHD_NO;

        if (!response)
                return MHD_NO;
        if (add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type)
                && add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store")
                && add_header(response, MHD_HTTP_HEADER_ETAG, reply->etag)
                && add_header(response, MHD_HTTP_HEADER_LOCATION, reply->location)
                && add_header(response, MHD_HTTP_HEADER_ALLOW, reply->allow)
                && add_header(response, MHD_HTTP_HEADER_RETRY_AFTER, reply->retry_after)
                && add_header(response, "Accept-Patch", accepted_patch(request))
                && add_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, reply->authenticate)
                && add_header(
                        response, MHD_HTTP_HEADER_CONNECTION, reply->close || request->last ? "close" : NULL))
                result = MHD_queue_response(request->connection, reply->status, response);
        MHD_destroy_response(response);
        request->sent = result == MHD_YES;
        request->client->unsent = request->sent ? size : 0;
        connection_enter(request->client, reply->read ? CONNECTION_HELD : CONNECTION_REPLY);
        if (request->sent)
                reply_count(request->api, request->route, reply->status);
        return result;
}

static struct request *request_new(struct api *api, struct MHD_Connection *connection, const char *path)
{
        struct connection *client = connection_of(connection);
        _cleanup_(request_free_pointer) struct request *request = calloc(1, sizeof(*request));

        if (!client || !request)
                return NULL;
        request->api = api;
        request->connection = connection;
        request->client = client;
        request->peer = client->peer;
        request->path = strdup(path);
        if (!request->path)
                return NULL;
        client->request = request;
        return TAKE_PTR(request);
}

/* The library takes no reply in the middle of a body: write the reply past the library, and have it close. */
static enum MHD_Result refuse_midway(struct request *request)
{
        connection_write_last(
                request->client->fd, request->reply.status, request->reply.content_type, request->reply.body);
        reply_count(request->api, request->route, request->reply.status);
        return MHD_NO;
}

/* Return the path of a target: "/path" for "http://host/path", which a client sends that takes ublkd for a
 * proxy. */
static const char *path_of_target(const char *path)
{
        static const char scheme[] = "http://";
        const char *slash;

        if (strncasecmp(path, scheme, sizeof(scheme) - 1) != 0)
                return path;
        slash = strchr(path + sizeof(scheme) - 1, '/');
        return slash ? slash : "/";
}

/* Called by the library for the headers, then for each piece of the body, then at its end, and again after a
 * suspension. */
static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection, const char *path,
        const char *method, const char *version, const char *data, size_t *size, void **context)
{
        struct request *request = *context;

        if (!request) {
                request = request_new(userdata, connection, path_of_target(path));
                if (!request)
                        return MHD_NO;
                *context = request;
                connection_enter(request->client, CONNECTION_BODY);
                if (head_check(request, method, version))
                        request_begin(request, method);
                return request->reply.close ? send_reply(request) : MHD_YES;
        }
        if (*size > 0) {
                int r = request_receive(request, data, *size);

                *size = 0;
                return r < 0 ? refuse_midway(request) : MHD_YES;
        }
        if (request->sent)
                return MHD_YES;
        if (!request->suspended && !request->abandoned)
                request_finish(request);
        if (request->suspended) {
                connection_enter(request->client, CONNECTION_HELD);
                return MHD_YES; /* suspended */
        }
        if (request->abandoned)
                return MHD_NO;
        log_debug(NULL, "%s %s from user %d: %u", method, request->path, (int)request->peer.uid,
                request->reply.status);
        return send_reply(request);
}

static void on_completed(void *userdata _unused_, struct MHD_Connection *connection, void **context,
        enum MHD_RequestTerminationCode code _unused_)
{
        struct connection *client = connection_of(connection);

        if (client && *context)
                audit_request(*context);
        *context = request_free(*context);
        if (client) {
                client->request = NULL;
                if (client->unsent > 0 && client->api->reader_turn) /* a reader may have waited for that */
                        (void)sd_event_source_set_enabled(client->api->reader_turn, SD_EVENT_ONESHOT);
                client->unsent = 0;
                connection_enter(client, CONNECTION_IDLE);
        }
}

/* Called by the library when it has read the request line. */
static void *on_target(void *userdata _unused_, const char *target, struct MHD_Connection *connection)
{
        struct connection *client = connection_of(connection);

        if (client) {
                client->target_size = strlen(target);
                free(client->target);
                client->target = client->target_size <= TARGET_SIZE_MAX ? strdup(target) : NULL;
                client->target_has_space = strpbrk(target, " \t") != NULL;
                connection_enter(client, CONNECTION_HEAD);
        }
        return NULL;
}

static void set_accepting(struct api *api, bool on)
{
        for (size_t i = 0; i < api->listener_count; i++)
                (void)sd_event_source_set_enabled(api->listeners[i].source, on ? SD_EVENT_ON : SD_EVENT_OFF);
}

static void on_connection(void *userdata, struct MHD_Connection *connection, void **context,
        enum MHD_ConnectionNotificationCode code)
{
        struct api *api = userdata;

        if (code == MHD_CONNECTION_NOTIFY_STARTED) {
                api->connections++;
                *context = connection_new(api, connection);
                return;
        }
        *context = connection_free(*context);
        if (api->connections-- == CONNECTIONS_MAX)
                set_accepting(api, true);
}

static int accept_again_in(struct api *api, uint64_t usec)
{
        int r = sd_event_source_set_time_relative(api->accept_again, usec);

        set_accepting(api, false);
        return r < 0 ? r : sd_event_source_set_enabled(api->accept_again, SD_EVENT_ONESHOT);
}

/* At the limit, new clients wait in the backlog until a connection closes; one that has been idle for long
 * enough is closed at once. */
static int make_room(struct api *api)
{
        (void)connection_close_idle(api);
        return accept_again_in(api, FULL_PAUSE_USEC);
}

static int on_accept_again(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct api *api = userdata;

        if (api->connections >= CONNECTIONS_MAX)
                return make_room(api);
        set_accepting(api, true);
        return 0;
}

/* Out of descriptors or memory: serve the present connections, and let new clients wait in the backlog. */
static int pause_accepting(struct api *api, int error)
{
        log_warning(NULL, "Cannot accept a connection: %s; trying again in 1 s", strerror(error));
        return accept_again_in(api, ACCEPT_PAUSE_USEC);
}

/* Refuse a connection beyond its user's share: no user can lock others out, and none can lock root out. */
static bool may_connect(struct api *api, struct arrival *arrival)
{
        char body[512];

        if (peer_of_socket(arrival->fd, &api->config.rights, &arrival->peer) >= 0
                && connection_allowed(api, &arrival->peer))
                return true;
        problem_text(PROBLEM_TOO_MANY_CONNECTIONS,
                "Too many connections are open; close some, or send several requests over one.", body,
                sizeof(body));
        connection_write_last(arrival->fd, problem_kinds[PROBLEM_TOO_MANY_CONNECTIONS].status,
                "application/problem+json", body);
        return false;
}

static int run_library(struct api *api)
{
        (void)MHD_run(api->daemon);
        return 0;
}

static void take_arrival(
        struct api *api, const struct arrival *arrival, const struct sockaddr *address, socklen_t size)
{
        api->arrival = arrival;
        (void)MHD_add_connection(api->daemon, arrival->fd, address, size); /* closes the socket on failure */
        run_library(api);                                                  /* counts the connection */
        api->arrival = NULL;
}

static int on_connect(
        sd_event_source *source _unused_, int listener, uint32_t events _unused_, void *userdata)
{
        struct api *api = userdata;

        for (unsigned i = 0; i < ACCEPT_AT_ONCE; i++) {
                struct sockaddr_storage address;
                socklen_t size = sizeof(address);
                int fd = accept4(listener, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
                struct arrival arrival = {.fd = fd};

                if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
                        return pause_accepting(api, errno);
                if (fd < 0 && errno != ECONNABORTED && errno != EINTR)
                        break;
                if (fd < 0)
                        continue;
                if (!may_connect(api, &arrival)) {
                        close_fd(fd);
                        continue;
                }
                take_arrival(api, &arrival, (const struct sockaddr *)&address, size);
                if (api->connections >= CONNECTIONS_MAX)
                        return make_room(api);
        }
        return 0;
}

static int on_readable(
        sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_, void *userdata)
{
        return run_library(userdata);
}

static int on_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        return run_library(userdata);
}

static int on_run(sd_event_source *source _unused_, void *userdata)
{
        return run_library(userdata);
}

/* Called before the loop waits: set the timer to the library's next deadline. */
static int on_prepare(sd_event_source *source _unused_, void *userdata)
{
        struct api *api = userdata;
        MHD_UNSIGNED_LONG_LONG milliseconds;
        int r;

        if (MHD_get_timeout(api->daemon, &milliseconds) != MHD_YES)
                return sd_event_source_set_enabled(api->timeout, SD_EVENT_OFF);
        r = sd_event_source_set_time_relative(api->timeout, milliseconds * 1000);
        return r < 0 ? r : sd_event_source_set_enabled(api->timeout, SD_EVENT_ONESHOT);
}

static int start_library(struct api *api)
{
        const union MHD_DaemonInfo *info;
        int r;

        api->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0,
                NULL, NULL, on_request, api, MHD_OPTION_NOTIFY_COMPLETED, on_completed, api,
                MHD_OPTION_NOTIFY_CONNECTION, on_connection, api, MHD_OPTION_URI_LOG_CALLBACK, on_target,
                NULL, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_CONNECTION_LIMIT,
                (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CONNECTION_SECONDS,
                MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT,
                LIBRARY_STRICTNESS, MHD_OPTION_END);
        if (!api->daemon)
                return -EIO;
        info = MHD_get_daemon_info(api->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        if (!info)
                return -EIO;
        r = sd_event_add_io(api->event, &api->readable, info->epoll_fd, EPOLLIN, on_readable, api);
        if (r >= 0)
                r = sd_event_add_time_relative(
                        api->event, &api->timeout, CLOCK_MONOTONIC, 0, 1000, on_deadline, api);
        if (r >= 0)
                r = sd_event_source_set_prepare(api->readable, on_prepare);
        if (r >= 0)
                r = sd_event_add_defer(api->event, &api->run, on_run, api);
        if (r >= 0)
                r = sd_event_add_time_relative(
                        api->event, &api->accept_again, CLOCK_MONOTONIC, 0, 0, on_accept_again, api);
        return r < 0 ? r : sd_event_source_set_enabled(api->accept_again, SD_EVENT_OFF);
}

static int open_listeners(struct api *api, struct problem_list *problems)
{
        const struct api_config *config = &api->config;
        int r = 0;

        api->listeners = calloc(config->listen_count + config->passed_sockets + 1, sizeof(*api->listeners));
        if (!api->listeners)
                return -ENOMEM;
        for (unsigned i = 0; r >= 0 && i < config->passed_sockets; i++) {
                r = listener_adopt(PASSED_FD + (int)i, &api->listeners[api->listener_count], problems);
                api->listener_count += r >= 0;
        }
        for (size_t i = 0; r >= 0 && i < config->listen_count; i++) {
                r = listener_open(config->listen[i], &config->socket_group,
                        &api->listeners[api->listener_count], problems);
                api->listener_count += r >= 0;
        }
        return r;
}

bool server_is_of_group(const struct api *api)
{
        const struct api_group *group = &api->config.socket_group;
        struct socket_file file = {};

        for (size_t i = 0; i < api->listener_count; i++) {
                const struct listener *listener = &api->listeners[i];

                /* every user can connect to an abstract socket, which has no file */
                if (!listener->tcp
                        && !(listener_look(listener, group, &file) && socket_file_is_of(&file, group)))
                        return false;
        }
        return group->exists;
}

int server_listen(struct api *api, struct problem_list *problems)
{
        bool tcp = false;
        int r = 0;

        for (size_t i = 0; i < api->listener_count; i++)
                tcp = tcp || api->listeners[i].tcp;
        if (tcp)
                r = token_open(api->config.state_dir, api->token, problems);
        for (size_t i = 0; r >= 0 && i < api->listener_count; i++)
                r = sd_event_add_io(api->event, &api->listeners[i].source, api->listeners[i].fd, EPOLLIN,
                        on_connect, api);
        return r;
}

static int listen_again_at(struct api *api, struct listener *listener, const char *path)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct listener fresh;
        int r = listener_open(path, &api->config.socket_group, &fresh, &problems);

        if (r < 0)
                return r;
        r = sd_event_add_io(api->event, &fresh.source, fresh.fd, EPOLLIN, on_connect, api);
        if (r < 0) {
                listener_close(&fresh);
                return r;
        }
        listener_close(listener);
        *listener = fresh;
        return 1;
}

int server_listen_again(struct api *api)
{
        char path[PATH_MAX];
        int count = 0, error = 0;

        for (size_t i = 0; i < api->listener_count; i++) {
                struct listener *listener = &api->listeners[i];
                int r = listener_is_lost(listener, path, sizeof(path)) ? listen_again_at(api, listener, path)
                                                                       : 0;

                count += r > 0;
                error = error < 0 ? error : r < 0 ? r : 0;
        }
        return error < 0 ? error : count;
}

int server_open(struct api *api, struct problem_list *problems)
{
        int r = reply_counts_new(api);

        readers_rest_open(&api->readers_rest);
        if (r >= 0)
                r = open_listeners(api, problems);
        return r < 0 ? r : start_library(api);
}

void server_close(struct api *api)
{
        for (size_t i = 0; i < api->listener_count; i++)
                listener_close(&api->listeners[i]);
        free(api->listeners);
        api->listener_count = 0; /* connections that close now must not cause new accepts */
        sd_event_source_disable_unref(api->readable);
        sd_event_source_disable_unref(api->timeout);
        sd_event_source_disable_unref(api->run);
        sd_event_source_disable_unref(api->accept_again);
        if (api->daemon)
                MHD_stop_daemon(api->daemon);
        sharing_stop(api);
        readers_rest_close(&api->readers_rest);
        free(api->replies);
        explicit_bzero(api->token, sizeof(api->token));
}
