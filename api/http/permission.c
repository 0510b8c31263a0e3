/* SPDX-License-Identifier: MIT */
/* Whether a request may read and change devices. */
#include "api/http/permission.h"

#include "api/http/respond.h"
#include "api/http/routes.h"
#include "api/http/server.h"

static bool has_flag(const struct request *request, enum route_flag flag)
{
        char name[PATH_NAME_MAX], allow[ALLOW_MAX];
        const struct route *route;

        return route_find(request->api->routes, request->path, request->method, &route, name, allow) >= 0
               && (route->flags & flag);
}

static bool is_public(const struct request *request)
{
        return has_flag(request, ROUTE_PUBLIC);
}

/* Return whether polkit can allow the request what the client may not do. It knows users of the host only. */
static bool can_ask(const struct request *request)
{
        const struct api_config *config = &request->api->config;

        return config->ask_authority && config->rights.asks_polkit && !peer_may_change(&request->peer)
               && (request->peer.home == PEER_HOME_UNASKED || request->peer.home == PEER_AT_HOME)
               && has_flag(request, ROUTE_CHANGES);
}

/* Return what to add to the sentence of a refusal. */
static const char *sentence_of_polkit(const struct request *request)
{
        switch (request->permission) {
        case PERMISSION_REFUSED:
                return " polkit does not allow the action io.ublkd.manage either.";
        case PERMISSION_UNANSWERED:
                return " polkit does not run, or did not answer.";
        default:
                return "";
        }
}

/* Refuse a client that has no rights because it is not of this host, whatever they would be there. Return false without
 * a reply if that is not why. */
static bool refuse_by_home(struct request *request, const char *what)
{
        unsigned uid = request->peer.uid;

        if (request->peer.home == PEER_IN_CONTAINER || request->peer.home == PEER_IN_USER_NAMESPACE)
                reply_problem(request, PROBLEM_FORBIDDEN,
                        "User %u of a container may not %s: in a container, users and groups do not have the "
                        "rights of the host's users and groups of the same number; send the request from the "
                        "host.",
                        uid, what);
        else if (request->peer.home == PEER_HOME_UNKNOWN)
                reply_problem(request, PROBLEM_FORBIDDEN,
                        "User %u may not %s: ublkd cannot see whether the client runs on this host or in a "
                        "container; let the process that connects live until the answer has come, and let "
                        "ublkd have "
                        "CAP_SYS_PTRACE.",
                        uid, what);
        return request->reply.status != 0;
}

bool permission_check_token(struct request *request)
{
        const char *authorization = MHD_lookup_connection_value(
                request->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);

        if (!request->peer.tcp || (!authorization && is_public(request)))
                return true;
        if (token_matches(request->api->token, authorization)) {
                if (connection_has_token(request->client))
                        return true;
                reply_problem(request, PROBLEM_TOO_MANY_CONNECTIONS,
                        "Too many connections with the token are open (limit: %d); close some, or send "
                        "several "
                        "requests over one.",
                        CONNECTIONS_OF_TOKEN);
                request->reply.close = true;
                return false;
        }
        reply_problem(request, PROBLEM_UNAUTHORIZED,
                authorization
                        ? "The token is wrong; the right one is in the file api-token of the state "
                          "directory (ublkctl: --token-file)."
                        : "The token is missing; over TCP every request but GET /healthz needs it. It is in "
                          "the file "
                          "api-token of the state directory: pass the file to ublkctl with --token-file, "
                          "or send 'Authorization: Bearer TOKEN'.");
        request->reply.authenticate = "Bearer realm=\"ublkd\"";
        return false;
}

static void reply_may_not_read(struct request *request)
{
        const struct api_group *readers = &request->api->config.rights.readers;
        const char *polkit = sentence_of_polkit(request);
        unsigned uid = request->peer.uid;

        if (refuse_by_home(request, "read"))
                return;
        if (readers->exists)
                reply_problem(request, PROBLEM_FORBIDDEN,
                        "User %u may not read: only root and the group %s may; ask root to add you to the "
                        "group %s, then log in again.%s",
                        uid, readers->name, readers->name, polkit);
        else if (readers->name)
                reply_problem(request, PROBLEM_FORBIDDEN,
                        "User %u may not read: only root may, as there was no group %s when ublkd read its "
                        "configuration; "
                        "ask root to create the group, to add you to it, and to reload ublkd.%s",
                        uid, readers->name, polkit);
        else
                reply_problem(request, PROBLEM_FORBIDDEN,
                        "User %u may not read: only root may; send the request as root.%s", uid, polkit);
}

bool permission_check_reader(struct request *request)
{
        if (peer_may_read(&request->peer, &request->api->config.rights) || is_public(request)
                || can_ask(request))
                return true;
        reply_may_not_read(request);
        return false;
}

static void reply_may_not_change(struct request *request)
{
        const struct api_group *administrators = &request->api->config.rights.administrators;
        const char *polkit = sentence_of_polkit(request);
        unsigned uid = request->peer.uid;

        if (refuse_by_home(request, "change devices"))
                return;
        if (administrators->exists)
                reply_problem(request, PROBLEM_FORBIDDEN,
                        "User %u may not change devices: only root, the user that ublkd runs as, and the "
                        "group %s may; ask root to add you to it, then log in again.%s",
                        uid, administrators->name, polkit);
        else
                reply_problem(request, PROBLEM_FORBIDDEN,
                        "User %u may not change devices; send the request as root or as the user that "
                        "ublkd runs as.%s",
                        uid, polkit);
}

bool permission_check_change(struct request *request)
{
        if (!(request->route->flags & ROUTE_CHANGES) || peer_may_change(&request->peer))
                return true;
        if (!can_ask(request)) {
                reply_may_not_change(request);
                return false;
        }
        request->permission = PERMISSION_WANTED;
        return true;
}

void permission_refuse(struct request *request)
{
        if (peer_may_read(&request->peer, &request->api->config.rights))
                reply_may_not_change(request);
        else
                reply_may_not_read(request);
}
