/* SPDX-License-Identifier: MIT */
/* Log who asked for which change, by which right, and what became of it. */
#include "api/http/audit.h"

#include "api/http/routes.h"
#include "api/http/server.h"

#include "ublkd/base/clock.h"
#include "ublkd/base/log.h"

#include <stdio.h>
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

/* Return by which right the client may make the change; NULL: by none. */
static const char *right_of(const struct request *request)
{
        const struct peer *peer = &request->peer;

        if (peer->tcp)
                return request->reply.status == MHD_HTTP_UNAUTHORIZED ? NULL : "token";
        if (peer->is_root)
                return "root";
        if (peer->is_administrator)
                return "administrators";
        return request->permission == PERMISSION_USED ? "polkit" : NULL;
}

bool audit_takes_refusal(struct audit *audit, uint64_t now, unsigned *ret_left_out)
{
        *ret_left_out = 0;
        if (now - audit->minute >= MINUTE_USEC) {
                *ret_left_out = audit->left_out;
                *audit = (struct audit){.minute = now};
        }
        if (audit->logged >= REFUSALS_LOGGED) {
                audit->left_out++;
                return false;
        }
        audit->logged++;
        return true;
}

static bool may_log_refusal(struct audit *audit)
{
        unsigned left_out;
        bool takes = audit_takes_refusal(audit, monotonic_now(), &left_out);

        if (left_out > 0)
                log_info(
                        NULL, "%u more requests for a change were refused, and are not in the log", left_out);
        return takes;
}

/* Return the device of the request, or of the answer; NULL: none. */
static const char *device_of(const struct request *request)
{
        const char *location = request->reply.location;

        if (strncmp(location, DEVICES_PATH, strlen(DEVICES_PATH)) == 0)
                return location + strlen(DEVICES_PATH);
        return request->route && strstr(request->route->path, "{name}") ? request->name : NULL;
}

static void describe_client(const struct peer *peer, char *text, size_t size)
{
        if (peer->tcp)
                snprintf(text, size, "a client over TCP");
        else
                snprintf(text, size, "user %u (pid %d%s)", (unsigned)peer->uid, (int)peer->pid,
                        peer->home == PEER_IN_CONTAINER ? ", in a container" : "");
}

static void write_record(const struct request *request, const char *method, const char *right)
{
        const struct peer *peer = &request->peer;
        const char *target = request->client->target ? request->client->target : request->path;
        char client[64], uid[16] = "", pid[16] = "", asked[512], status[16] = "";
        const struct log_field more[] = {
                {"CLIENT_UID", uid},
                {"CLIENT_PID", pid},
                {"CLIENT_RIGHT", right ? right : "refused"},
                {"REQUEST", asked},
                {"STATUS", status},
                {}
        };

        describe_client(peer, client, sizeof(client));
        snprintf(asked, sizeof(asked), "%s %s", method, target);
        if (!peer->tcp) {
                snprintf(uid, sizeof(uid), "%u", (unsigned)peer->uid);
                snprintf(pid, sizeof(pid), "%d", (int)peer->pid);
        }
        if (request->reply.status > 0)
                snprintf(status, sizeof(status), "%u", request->reply.status);
        log_record(LOG_INFO, &(const struct log_fields){.device = device_of(request), .more = more},
                "%s by %s, %s%s: %s", asked, client, right ? "as " : "", right ? right : "refused",
                *status ? status : "the client left before the answer");
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
        if (right ? request->route != NULL : may_log_refusal(&request->api->audit))
                write_record(request, methods[request->method], right);
}
