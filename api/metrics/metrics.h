/* SPDX-License-Identifier: MIT */
/* GET /metrics, by the object that is measured. Private to api/. */
#pragma once

#include "api/metrics/metric.h"
#include "api/http/server.h"

enum {
        METRICS_DEVICES_MAX = 256, /* which ones: metrics_shares.h; more are counted only */
};

/* See handlers.h. */
void handle_metrics(struct request *request);

/* Print the metrics of the process, with the names that all Prometheus clients use. */
void metrics_of_process(FILE *out);
/* Print the metrics of the daemon: its work, its clients, its store. */
void metrics_of_daemon(FILE *out, const struct api *api);
/* Print the metrics of each device. Return 0 or -ENOMEM. */
int metrics_of_devices(FILE *out, const struct api *api);
