/* SPDX-License-Identifier: MIT */
/* GET /metrics: Prometheus text. */
#include "api/metrics/metrics.h"

#include "api/http/respond.h"

void handle_metrics(struct request *request)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        int r;

        if (!out) {
                reply_error(request, -ENOMEM, "The metrics could not be made");
                return;
        }
        metrics_of_process(out);
        metrics_of_daemon(out, request->api);
        r = metrics_of_devices(out, request->api);
        if (fclose(out) != 0) /* writes what is left: it can fail for memory, and nothing else */
                r = -ENOMEM;
        if (r < 0)
                reply_error(request, r, "The metrics could not be made");
        else
                reply_text(request, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text);
}
