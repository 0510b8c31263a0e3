/* SPDX-License-Identifier: MIT */
/* GET /healthz: the loop runs. GET /readyz: ublkd has looked at every device and can store changes. */
#include "api/resources/handlers.h"
#include "api/http/respond.h"
#include "api/http/server.h"

void handle_health(struct request *request)
{
        reply_text(request, MHD_HTTP_OK, "application/json", "{\"status\":\"ok\"}");
}

/* Every change is refused then, and what happens is forgotten: a probe is to see that. */
static bool is_database_gone(const struct api_config *config)
{
        return device_store_check(config->store) == -ENOLINK;
}

void handle_ready(struct request *request)
{
        const struct api_config *config = &request->api->config;

        if (config->is_ready && !config->is_ready(config->userdata))
                reply_problem(request, PROBLEM_NOT_READY,
                        "ublkd has not looked at every device yet; ask again in a moment.");
        else if (is_database_gone(config))
                reply_problem(request, PROBLEM_DATABASE_GONE,
                        "The database was deleted or moved away while ublkd runs: devices are served and can "
                        "be read, and every change is refused. Restart ublkd: the disks are served on, and "
                        "'ublkctl adopt --all' takes them over.");
        else
                reply_text(request, MHD_HTTP_OK, "application/json", "{\"status\":\"ready\"}");
}
