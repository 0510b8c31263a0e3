/* SPDX-License-Identifier: MIT */
/* Answer GET /metrics with Prometheus text. */
#include "api/metrics/metrics.h"

#include "api/http/respond.h"
#include "api/http/sharing.h"

void handle_metrics(struct request *request)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        FILE *out;
        int r;

        if (sharing_reply(request))
                return;
        out = open_memstream(&text, &size);
        if (!out) {
                reply_error(request, -ENOMEM, "Cannot print the metrics");
                return;
        }
        metrics_of_process(out);
        metrics_of_daemon(out, request->api);
        r = metrics_of_devices(out, request->api);
        if (fclose(out) != 0) /* flushes the rest, which can fail with ENOMEM only */
                r = -ENOMEM;
        if (r < 0) {
                reply_error(request, r, "Cannot print the metrics");
                return;
        }
        reply_text(request, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text);
        sharing_keep(request);
}
