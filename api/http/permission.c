/* SPDX-License-Identifier: MIT */
/* Whether a request may read and change devices. */
#include "api/http/permission.h"

#include "api/http/audit.h"
#include "api/http/respond.h"
#include "api/http/routes.h"
#include "api/http/server.h"
#include "api/http/tenancy.h"
#include "ublkd/base/clock.h"

#include <stdio.h>

enum { RULE_SENTENCE_MAX = 512, OTHER_WAYS_MAX = 640 };

/* Return whether the route of a request has the flag; `otherwise` if the path has no such route. */
static bool has_flag(const struct request *request, enum route_flag flag, bool otherwise)
{
        char name[PATH_NAME_MAX], item[PATH_NAME_MAX], allow[ALLOW_MAX];
        const struct route *route;

        if (route_find(request->api->routes, request->path, request->method, &route, name, item, allow) < 0)
                return otherwise;
        return route->flags & flag;
}

static bool is_public(const struct request *request)
{
        return has_flag(request, ROUTE_PUBLIC, false);
}

/* Return whether the client is a tenant, and the request one that tenants may send. */
static bool is_for_tenant(const struct request *request)
{
        return tenant_is_set(request->peer.tenant) && has_flag(request, ROUTE_TENANTS, true);
}

/* Return whether polkit can allow the request what the client may not do. It knows users of the host only. */
static bool can_ask(const struct request *request)
{
        const struct api_config *config = &request->api->config;

        return config->ask_authority && config->rights.asks_polkit && !peer_may_change(&request->peer)
               && (request->peer.home == PEER_HOME_UNASKED || request->peer.home == PEER_AT_HOME)
               && has_flag(request, ROUTE_CHANGES, false);
}

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

/* Write the sentence that says which rule of the policy would make the client a tenant; "" if it is one already. Note its
 * control group for the log. */
static void describe_rule(struct request *request, char ret[static RULE_SENTENCE_MAX])
{
        const struct policy *policy = request->api->config.rights.policy;
        const struct peer *peer = &request->peer;
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_tenancy_ struct tenancy tenancy = {};
        enum peer_home home = peer->home == PEER_HOME_UNASKED ? PEER_AT_HOME : peer->home;

        *ret = '\0';
        if (!policy || peer->tcp || tenant_is_set(peer->tenant)
                || tenancy_find(request->client->fd, policy, peer->uid, peer->gid, home, &tenancy) < 0)
                return;
        audit_note_rule(request, "", tenancy.client.cgroup);
        if (policy_add_no_rule(policy, &tenancy.client, &problems) < 0 || problems.count == 0)
                return;
        snprintf(ret, RULE_SENTENCE_MAX, " It has no devices of its own either. %s.",
                problems.items[0].detail);
}

/* Write what to add to the sentence of a refusal. */
static void describe_other_ways(struct request *request, char ret[static OTHER_WAYS_MAX])
{
        char rule[RULE_SENTENCE_MAX];

        describe_rule(request, rule);
        snprintf(ret, OTHER_WAYS_MAX, "%s%s", sentence_of_polkit(request), rule);
}

/* Refuse a client that has no rights because it is not of this host, whatever they would be there. Return false without
 * a reply if that is not why. */
static bool refuse_by_home(struct request *request, const char *what)
{
        unsigned uid = request->peer.uid;
        char rule[RULE_SENTENCE_MAX];

        if (request->peer.home == PEER_IN_CONTAINER || request->peer.home == PEER_IN_USER_NAMESPACE) {
                describe_rule(request, rule);
                reply_problem(request, PROBLEM_FORBIDDEN,
                        "User %u of a container may not %s: in a container, users and groups do not have the "
                        "rights of the host's users and groups of the same number; send the request from the "
                        "host.%s",
                        uid, what, rule);
        } else if (request->peer.home == PEER_HOME_UNKNOWN)
                reply_problem(request, PROBLEM_FORBIDDEN,
                        "User %u may not %s: ublkd cannot see whether the client runs on this host or in a "
                        "container; let the process that connects live until the answer has come, and let "
                        "ublkd have CAP_SYS_PTRACE.",
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

static void reply_may_not_see_all(struct request *request)
{
        reply_problem(request, PROBLEM_FORBIDDEN,
                "User %u may see and change its own devices only, and this is about all of the host: root "
                "may "
                "do it.",
                (unsigned)request->peer.uid);
}

static void reply_may_not_read(struct request *request)
{
        const struct api_group *readers = &request->api->config.rights.readers;
        char others[OTHER_WAYS_MAX];
        unsigned uid = request->peer.uid;

        if (tenant_is_set(request->peer.tenant)) {
                reply_may_not_see_all(request);
                return;
        }
        if (refuse_by_home(request, "read"))
                return;
        describe_other_ways(request, others);
        if (readers->exists)
                reply_problem(request, PROBLEM_FORBIDDEN,
                        "User %u may not read: only root and the group %s may; ask root to add you to the "
                        "group %s, then log in again.%s",
                        uid, readers->name, readers->name, others);
        else if (readers->name)
                reply_problem(request, PROBLEM_FORBIDDEN,
                        "User %u may not read: only root may, as there was no group %s when ublkd read its "
                        "configuration; "
                        "ask root to create the group, to add you to it, and to reload ublkd.%s",
                        uid, readers->name, others);
        else
                reply_problem(request, PROBLEM_FORBIDDEN,
                        "User %u may not read: only root may; send the request as root.%s", uid, others);
}

bool permission_check_reader(struct request *request)
{
        if (peer_may_read(&request->peer, &request->api->config.rights) || is_public(request)
                || is_for_tenant(request) || can_ask(request))
                return true;
        reply_may_not_read(request);
        return false;
}

static void reply_not_its_own(struct request *request)
{
        reply_problem(request, PROBLEM_FORBIDDEN,
                "User %u may change its own devices only, and this is not one of them.",
                (unsigned)request->peer.uid);
}

static void reply_may_not_change(struct request *request)
{
        const struct api_group *administrators = &request->api->config.rights.administrators;
        char others[OTHER_WAYS_MAX];
        unsigned uid = request->peer.uid;

        if (tenant_is_set(request->peer.tenant)) {
                reply_not_its_own(request);
                return;
        }
        if (refuse_by_home(request, "change devices"))
                return;
        describe_other_ways(request, others);
        if (administrators->exists)
                reply_problem(request, PROBLEM_FORBIDDEN,
                        "User %u may not change devices: only root, the user that ublkd runs as, and the "
                        "group %s may; ask root to add you to it, then log in again.%s",
                        uid, administrators->name, others);
        else
                reply_problem(request, PROBLEM_FORBIDDEN,
                        "User %u may not change devices; send the request as root or as the user that "
                        "ublkd runs as.%s",
                        uid, others);
}

/* A change of a tenant costs ublkd a turn of the device and writes to the database, also one that is refused later. */
static bool take_change(struct request *request)
{
        const struct peer *peer = &request->peer;
        uint64_t wait = change_rate_take(
                &request->api->changes, peer->account, peer->changes_per_minute, monotonic_now());
        unsigned seconds = (unsigned)((wait + USEC_PER_SEC - 1) / USEC_PER_SEC);

        if (wait == 0)
                return true;
        reply_problem(request, PROBLEM_TOO_MANY_CHANGES,
                "User %u may send %u changes in a minute, and has sent them. Nothing was changed; try again "
                "in %u s.",
                (unsigned)peer->uid, peer->changes_per_minute, seconds);
        snprintf(request->reply.retry_after, sizeof(request->reply.retry_after), "%u", seconds);
        return false;
}

bool permission_check_change(struct request *request)
{
        if (!(request->route->flags & ROUTE_CHANGES) || peer_may_change(&request->peer))
                return true;
        if (is_for_tenant(request))
                return take_change(request);
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
