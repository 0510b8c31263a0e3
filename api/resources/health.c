/* SPDX-License-Identifier: MIT */
/* GET /healthz: the loop runs. GET /readyz: ublkd has looked at every device and can store changes.
 *
 * Every user may probe, often, so neither looks at anything: a file system that does not answer would stop the loop. */
#include "api/resources/handlers.h"
#include "api/http/respond.h"
#include "api/http/server.h"

void handle_health(struct request *request)
{
        reply_text(request, MHD_HTTP_OK, "application/json", "{\"status\":\"ok\"}");
}

void handle_ready(struct request *request)
{
        const struct api_config *config = &request->api->config;

        if (config->is_ready && !config->is_ready(config->userdata))
                reply_problem(request, PROBLEM_NOT_READY,
                        "ublkd has not looked at every device yet; ask again in a moment.");
        else if (device_store_is_gone(config->store)) /* every change is refused, and events are lost */
                reply_problem(request, PROBLEM_DATABASE_GONE,
                        "The database was deleted or moved away while ublkd runs: devices are served and can "
                        "be read, and every change is refused. Restart ublkd: the disks are served on, and "
                        "'ublkctl adopt --all' takes them over.");
        else
                reply_text(request, MHD_HTTP_OK, "application/json", "{\"status\":\"ready\"}");
}
