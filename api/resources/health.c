/* SPDX-License-Identifier: MIT */
/* GET /healthz: the loop runs. GET /readyz: every device has had its first look. */
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

        if (!config->is_ready || config->is_ready(config->userdata))
                reply_text(request, MHD_HTTP_OK, "application/json", "{\"status\":\"ready\"}");
        else
                reply_problem(request, PROBLEM_NOT_READY,
                        "ublkd has not looked at every device yet; ask again in a moment.");
}
