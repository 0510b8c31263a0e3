/* SPDX-License-Identifier: MIT */
/* The clients' connections. */
#include "api/http/connection.h"

#include "api/http/hold.h"
#include "api/http/respond.h"
#include "api/http/server.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
        DEADLINE_ACCURACY_USEC = 100 * 1000,
        UNREAD_USEC = 1000 * 1000, /* then an answer can be given up for those of others */
        TOKEN_SECONDS = 2,         /* from the connection until the head of a request with the token */
};

static const unsigned default_seconds[] = {
        [CONNECTION_IDLE] = 30,
        [CONNECTION_HEAD] = 10,
        [CONNECTION_BODY] = 60,
        [CONNECTION_HELD] = 0,
        [CONNECTION_REPLY] = 60,
        [CONNECTION_CLOSED] = 0,
};
static_assert(ARRAY_SIZE(default_seconds) == _CONNECTION_STATE_MAX, "every state has a time");

/* Return how long a state may last, in microseconds; 0: without limit. */
static uint64_t time_of(const struct api *api, enum connection_state state)
{
        const struct api_times *times = &api->config.times;
        const uint64_t configured[_CONNECTION_STATE_MAX] = {
                [CONNECTION_IDLE] = times->idle,
                [CONNECTION_HEAD] = times->head,
                [CONNECTION_BODY] = times->body,
                [CONNECTION_REPLY] = times->reply,
        };

        return configured[state] ? configured[state] : default_seconds[state] * UINT64_C(1000000);
}

static uint64_t now_usec(const struct api *api)
{
        uint64_t now = 0;

        (void)sd_event_now(api->event, CLOCK_MONOTONIC, &now); /* fails only in another process */
        return now;
}

/* The same for this connection: over TCP it has little time until the token must have come, whatever its state. */
static uint64_t time_left(const struct connection *connection, enum connection_state state)
{
        const struct api *api = connection->api;
        uint64_t time = time_of(api, state), token = api->config.times.token, past, left;

        if (connection->kind != CLIENT_UNKNOWN || state == CONNECTION_CLOSED)
                return time;
        token = token ? token : TOKEN_SECONDS * UINT64_C(1000000);
        past = now_usec(api) - connection->since;
        left = past < token ? token - past : 1;
        return time > 0 && time < left ? time : left;
}

static void unlink_connection(struct connection *connection)
{
        struct api *api = connection->api;

        *(connection->previous ? &connection->previous->next : &api->clients) = connection->next;
        *(connection->next ? &connection->next->previous : &api->last_client) = connection->previous;
        connection->previous = connection->next = NULL;
}

static void append_connection(struct connection *connection)
{
        struct api *api = connection->api;

        connection->previous = api->last_client;
        *(api->last_client ? &api->last_client->next : &api->clients) = connection;
        api->last_client = connection;
}

static void shut_down(struct connection *connection)
{
        connection_enter(connection, CONNECTION_CLOSED);
        (void)shutdown(connection->fd, SHUT_RDWR);
        api_run_soon(connection->api);
}

/* A connection with a request that ublkd has not read yet is not idle. */
static bool is_idle(const struct connection *connection)
{
        char byte;

        return connection->state == CONNECTION_IDLE
               && recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

/* ublkd may have been held up for longer than the deadline: a request that has arrived meanwhile is read. It gets
 * the time of a head once, so a client that sends one byte now and then gains nothing. */
static int on_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct connection *connection = userdata;
        struct request *request = connection->request;

        if (connection->state == CONNECTION_IDLE && !is_idle(connection)) {
                connection_enter(connection, CONNECTION_HEAD);
                return 0;
        }
        if (connection->state == CONNECTION_BODY && request
                && !(connection->kind == CLIENT_UNKNOWN && request->reply.status != 0)) /* keep that 401 */
                reply_problem(request, PROBLEM_BODY_TOO_SLOW,
                        "The body timed out after %u s; send it faster, or in smaller requests.",
                        (unsigned)(time_of(connection->api, CONNECTION_BODY) / 1000000));
        if (connection->state == CONNECTION_BODY && request)
                connection_write_last(connection->fd, request->reply.status, request->reply.content_type,
                        request->reply.body);
        shut_down(connection);
        return 0;
}

static enum client_kind kind_of(const struct api *api, const struct peer *peer)
{
        if (peer->tcp)
                return CLIENT_UNKNOWN;
        if (peer_may_change(peer))
                return CLIENT_CHANGES;
        return tenant_is_set(peer->tenant) || peer_may_read(peer, &api->config.rights) ? CLIENT_READS
                                                                                       : CLIENT_STRANGER;
}

/* To find out who a peer is takes a while, and was done for api->arrival. */
static int find_peer(const struct api *api, int fd, struct peer *ret)
{
        if (!api->arrival || api->arrival->fd != fd)
                return peer_of_socket(fd, &api->config.rights, ret);
        *ret = api->arrival->peer;
        return 0;
}

struct connection *connection_new(struct api *api, struct MHD_Connection *mhd)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct connection *connection = info ? calloc(1, sizeof(*connection)) : NULL;
        int r = connection ? find_peer(api, info->connect_fd, &connection->peer) : -ENOMEM;

        if (r >= 0)
                r = sd_event_add_time_relative(api->event, &connection->deadline, CLOCK_MONOTONIC, 0,
                        DEADLINE_ACCURACY_USEC, on_deadline, connection);
        if (r < 0) {
                if (info)
                        (void)shutdown(info->connect_fd, SHUT_RDWR);
                free(connection);
                return NULL;
        }
        connection->api = api;
        connection->kind = kind_of(api, &connection->peer);
        connection->since = now_usec(api);
        connection->fd = info->connect_fd;
        append_connection(connection);
        connection_enter(connection, CONNECTION_IDLE);
        return connection;
}

struct connection *connection_free(struct connection *connection)
{
        if (!connection)
                return NULL;
        unlink_connection(connection);
        sd_event_source_disable_unref(connection->deadline);
        free(connection->target);
        free(connection);
        return NULL;
}

struct connection *connection_of(struct MHD_Connection *mhd)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

        return info ? info->socket_context : NULL;
}

void connection_enter(struct connection *connection, enum connection_state state)
{
        uint64_t time = time_left(connection, state);

        if (connection->state == CONNECTION_CLOSED)
                return;
        connection->state = state;
        connection->entered = now_usec(connection->api);
        unlink_connection(connection);
        append_connection(connection);
        /* Both calls fail only in another process, or after the loop has ended. */
        if (time > 0)
                (void)sd_event_source_set_time_relative(connection->deadline, time);
        (void)sd_event_source_set_enabled(connection->deadline, time > 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

/* How many connections clients of a kind may have; 0: as many as there are. */
static const struct {
        unsigned together, of_an_account;
} shares[] = {
        [CLIENT_CHANGES] = {},
        [CLIENT_TOKEN] = {.together = CONNECTIONS_OF_TOKEN},
        [CLIENT_READS] = {.together = CONNECTIONS_OF_READERS, .of_an_account = CONNECTIONS_OF_A_USER},
        [CLIENT_STRANGER] = {.together = CONNECTIONS_OF_OTHERS, .of_an_account = CONNECTIONS_OF_A_STRANGER},
        [CLIENT_UNKNOWN] = {.together = CONNECTIONS_WITHOUT_TOKEN},
};
static_assert(ARRAY_SIZE(shares) == _CLIENT_KIND_MAX, "every kind has a share");

/* Some connections: of a kind (_CLIENT_KIND_MAX: of any), and of one account (NULL: of any). */
struct some {
        enum client_kind kind;
        const uint32_t *account;
};

static bool is_one_of(const struct connection *connection, const struct some *some)
{
        return connection->state != CONNECTION_CLOSED
               && (some->kind == _CLIENT_KIND_MAX || connection->kind == some->kind)
               && (!some->account || connection->peer.account == *some->account);
}

static unsigned count_some(const struct api *api, const struct some *some)
{
        unsigned count = 0;

        for (const struct connection *connection = api->clients; connection; connection = connection->next)
                count += is_one_of(connection, some);
        return count;
}

/* Close the one of some that has been in its state for longest, and is idle; `busy`: also if it is not. Not the newest
 * of all. */
static bool close_one(struct api *api, const struct some *some, bool busy)
{
        for (struct connection *connection = api->clients; connection; connection = connection->next)
                if (connection != api->last_client && is_one_of(connection, some)
                        && (busy || is_idle(connection))) {
                        shut_down(connection);
                        return true;
                }
        return false;
}

static bool has_room(struct api *api, const struct some *some, unsigned limit)
{
        return limit == 0 || count_some(api, some) < limit || close_one(api, some, false)
               || (some->kind == CLIENT_UNKNOWN && close_one(api, some, true));
}

bool connection_allowed(struct api *api, const struct peer *peer)
{
        enum client_kind kind = kind_of(api, peer);

        return has_room(api, &(struct some){.kind = kind, .account = &peer->account},
                       shares[kind].of_an_account)
               && has_room(api, &(struct some){.kind = kind}, shares[kind].together);
}

bool connection_has_token(struct connection *connection)
{
        struct api *api = connection->api;

        if (connection->kind != CLIENT_UNKNOWN)
                return true;
        if (!has_room(api, &(struct some){.kind = CLIENT_TOKEN}, shares[CLIENT_TOKEN].together))
                return false;
        connection->kind = CLIENT_TOKEN;
        connection_enter(connection, connection->state); /* its time is longer now */
        return true;
}

bool connection_is_privileged(const struct connection *connection)
{
        return connection->kind == CLIENT_CHANGES || connection->kind == CLIENT_TOKEN;
}

bool connection_close_idle(struct api *api)
{
        return close_one(api, &(struct some){.kind = _CLIENT_KIND_MAX}, false);
}

size_t connection_unsent(const struct api *api, const uint32_t *account)
{
        size_t bytes = 0;

        for (const struct connection *connection = api->clients; connection; connection = connection->next)
                if (!connection_is_privileged(connection)
                        && (!account || connection->peer.account == *account))
                        bytes += connection->unsent;
        return bytes;
}

/* Return the connection of a client without rights to change that has not read its answer for longest; NULL: none. */
static const struct connection *longest_unread(const struct api *api)
{
        uint64_t now = now_usec(api);

        for (const struct connection *connection = api->clients; connection; connection = connection->next)
                if (connection->state == CONNECTION_REPLY && connection->unsent > 0
                        && !connection_is_privileged(connection) && now - connection->entered >= UNREAD_USEC)
                        return connection;
        return NULL;
}

/* A connection that is closed goes to the end of the list. */
void connection_close_others(struct api *api)
{
        struct connection *next;

        for (struct connection *connection = api->clients; connection; connection = next) {
                next = connection->next;
                if (connection->state != CONNECTION_CLOSED
                        && (connection->kind == CLIENT_READS || connection->kind == CLIENT_STRANGER
                                || connection->peer.is_administrator))
                        shut_down(connection);
        }
}

void connection_close_unread(struct api *api)
{
        const struct connection *unread = longest_unread(api);
        uint32_t account = unread ? unread->peer.account : 0;
        struct connection *next;

        for (struct connection *connection = unread ? api->clients : NULL; connection; connection = next) {
                next = connection->next; /* a connection that is shut down goes to the end of the list */
                if (connection->state != CONNECTION_CLOSED && !connection_is_privileged(connection)
                        && connection->peer.account == account)
                        shut_down(connection);
        }
}

void connection_write_last(int fd, unsigned status, const char *content_type, const char *body)
{
        char head[256];
        size_t size = body ? strlen(body) : 0;
        int n = snprintf(head, sizeof(head),
                "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nCache-Control: no-store\r\nConnection: "
                "close\r\nContent-Length: %zu\r\n\r\n",
                status, MHD_get_reason_phrase_for(status), content_type, size);

        if (n > 0 && (size_t)n < sizeof(head)
                && send(fd, head, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL | (size ? MSG_MORE : 0)) == n
                && size)
                (void)send(fd, body, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}
