/* SPDX-License-Identifier: MIT */
/* Log who asked for which change, by which right, and what became of it. */
#include "api/http/audit.h"

#include "api/http/routes.h"
#include "api/http/server.h"

#include "ublkd/base/clock.h"
#include "ublkd/base/log.h"
#include "ublkd/model/device_spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MINUTE_USEC = 60 * 1000 * 1000 };

#define DEVICES_PATH "/devices/"

static bool asks_for_a_change(const struct request *request)
{
        if (request->route)
                return request->route->flags & ROUTE_CHANGES;
        return request->method != METHOD_GET && request->method != METHOD_OPTIONS
               && request->method != _METHOD_INVALID;
}

/* Return by which right the client may make the change; NULL: by none. Over TCP only a request with the token has a
 * route. */
static const char *right_of(const struct request *request)
{
        const struct peer *peer = &request->peer;

        if (peer->tcp)
                return request->route ? "token" : NULL;
        if (peer->is_root)
                return "root";
        if (peer->is_administrator)
                return "administrators";
        if (request->permission == PERMISSION_USED)
                return "polkit";
        return tenant_is_set(peer->tenant) && request->route && (request->route->flags & ROUTE_TENANTS)
                       ? "tenant"
                       : NULL;
}

/* Return how many refusals of the account are logged in this minute; NULL: there is no place for it. */
static unsigned *logged_of(struct audit *audit, uint32_t account)
{
        for (size_t i = 0; i < audit->used; i++)
                if (audit->of[i].account == account)
                        return &audit->of[i].logged;
        if (audit->used == AUDIT_ACCOUNTS)
                return NULL;
        audit->of[audit->used].account = account;
        audit->of[audit->used].logged = 0;
        return &audit->of[audit->used++].logged;
}

bool audit_takes_refusal(
        struct audit *audit, uint32_t account, unsigned most, uint64_t now, unsigned *ret_left_out)
{
        unsigned *logged;

        *ret_left_out = 0;
        if (audit->minute == 0 || now - audit->minute >= MINUTE_USEC) {
                *ret_left_out = audit->left_out;
                audit->minute = now;
                audit->logged = audit->left_out = 0;
                audit->used = 0;
        }
        logged = audit->logged < most ? logged_of(audit, account) : NULL;
        if (!logged || *logged >= REFUSALS_LOGGED) {
                audit->left_out++;
                return false;
        }
        ++*logged;
        audit->logged++;
        return true;
}

static bool may_log_refusal(const struct request *request)
{
        static const unsigned most[_AUDIT_OF_MAX] = {
                [AUDIT_OF_TENANTS] = REFUSALS_LOGGED_OF_TENANTS,
                [AUDIT_OF_OTHERS] = REFUSALS_LOGGED_OF_OTHERS,
                [AUDIT_OF_TCP] = REFUSALS_LOGGED,
        };
        const struct peer *peer = &request->peer;
        bool is_tenant = tenant_is_set(peer->tenant);
        enum audit_of of = peer->tcp ? AUDIT_OF_TCP : is_tenant ? AUDIT_OF_TENANTS : AUDIT_OF_OTHERS;
        unsigned left_out;
        bool takes = audit_takes_refusal(
                &request->api->audit[of], peer->account, most[of], monotonic_now(), &left_out);

        if (left_out > 0)
                log_info(NULL, "%u more requests %sfor a change were refused, and are not in the log",
                        left_out, is_tenant ? "of tenants " : "");
        return takes;
}

/* Return the device of the request, or of the answer; NULL: none. The client has chosen the name, and the line begins with
 * it. */
static const char *device_of(const struct request *request)
{
        const char *location = request->reply.location;

        /* What lies below a device has its name in the path of the request. */
        if (strncmp(location, DEVICES_PATH, strlen(DEVICES_PATH)) == 0
                && !strchr(location + strlen(DEVICES_PATH), '/'))
                return location + strlen(DEVICES_PATH);
        return request->route && device_name_is_valid(request->name) ? request->name : NULL;
}

/* Return where the process of the client runs. For one without rights ublkd has not looked yet. */
static enum peer_home home_of(const struct request *request)
{
        enum peer_home home = request->peer.home;

        if (home == PEER_HOME_UNASKED && !request->peer.tcp && geteuid() == 0)
                (void)peer_home_of(request->client->fd, &home);
        return home;
}

static void describe_client(const struct peer *peer, enum peer_home home, char *text, size_t size)
{
        static const char *const places[_PEER_HOME_MAX] = {
                [PEER_HOME_UNASKED] = "",
                [PEER_AT_HOME] = "",
                [PEER_IN_CONTAINER] = ", in a container",
                [PEER_IN_USER_NAMESPACE] = ", in a user namespace",
                [PEER_HOME_UNKNOWN] = ", perhaps in a container",
        };

        if (peer->tcp)
                snprintf(text, size, "a client over TCP");
        else
                snprintf(text, size, "user %u (pid %d%s)", (unsigned)peer->uid, (int)peer->pid, places[home]);
}

/* What became of it: refused, or by which right it was done. */
static const char *outcome_of(const struct request *request, const char *right)
{
        if (right)
                return right;
        return request->permission == PERMISSION_WANTED || request->permission == PERMISSION_ASKED
                       ? "undecided"
                       : "refused";
}

static void write_record(const struct request *request, const char *method, const char *right)
{
        static const char *const homes[_PEER_HOME_MAX] = {
                [PEER_HOME_UNASKED] = "",
                [PEER_AT_HOME] = "host",
                [PEER_IN_CONTAINER] = "container",
                [PEER_IN_USER_NAMESPACE] = "user namespace",
                [PEER_HOME_UNKNOWN] = "unknown",
        };
        const struct peer *peer = &request->peer;
        enum peer_home home = home_of(request);
        const char *target = request->client->target ? request->client->target : request->path,
                   *outcome = outcome_of(request, right);
        char client[96], uid[16] = "", pid[16] = "", asked[512], status[16] = "", generation[24] = "";
        const struct log_field more[] = {
                {"CLIENT_UID", uid},
                {"CLIENT_PID", pid},
                {"CLIENT_HOME", homes[home]},
                {"CLIENT_RIGHT", outcome},
                {"CLIENT_RULE", request->rule},
                {"CLIENT_CGROUP", request->cgroup ? request->cgroup : ""},
                {"REQUEST", asked},
                {"STATUS", status},
                {"DEVICE_GENERATION", generation},
                {}
        };

        describe_client(peer, home, client, sizeof(client));
        snprintf(asked, sizeof(asked), "%s %s", method, target);
        if (!peer->tcp) {
                snprintf(uid, sizeof(uid), "%u", (unsigned)peer->uid);
                snprintf(pid, sizeof(pid), "%d", (int)peer->pid);
        }
        if (request->reply.generation > 0)
                snprintf(generation, sizeof(generation), "%" PRIu64, request->reply.generation);
        if (request->reply.status > 0)
                snprintf(status, sizeof(status), "%u", request->reply.status);
        log_record(LOG_INFO, &(const struct log_fields){.device = device_of(request), .more = more},
                "%s by %s, %s%s: %s", asked, client, right ? "as " : "", outcome,
                *status ? status : "ended without an answer");
}

/* A tenant can send what is refused as often as a client without rights can. */
static bool is_refused_tenant(const struct request *request)
{
        return tenant_is_set(request->peer.tenant) && request->reply.status >= 400;
}

void audit_request(const struct request *request)
{
        static const char *const methods[_METHOD_MAX] = {
                [METHOD_POST] = "POST",
                [METHOD_PUT] = "PUT",
                [METHOD_PATCH] = "PATCH",
                [METHOD_DELETE] = "DELETE",
        };
        const char *right;

        if (request->method < 0 || request->method >= _METHOD_MAX || !methods[request->method]
                || !asks_for_a_change(request))
                return;
        right = right_of(request);
        if (right && !is_refused_tenant(request) ? request->route != NULL : may_log_refusal(request))
                write_record(request, methods[request->method], right);
}

void audit_note_rule(struct request *request, const char *place, const char *cgroup)
{
        free(request->cgroup);
        request->cgroup = cgroup ? strdup(cgroup) : NULL; /* on ENOMEM the log lacks it */
        snprintf(request->rule, sizeof(request->rule), "%s", place);
}
