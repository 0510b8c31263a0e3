/* SPDX-License-Identifier: MIT */
/* Print the metrics of the daemon: its work, its clients, its store. */
#include "api/metrics/metrics.h"

#include "api/http/reply_counts.h"
#include "api/http/routes.h"
#include "api/held/wait.h"
#include "api/held/watch.h"
#include "ublkd/base/version.h"

#include <assert.h>
#include <string.h>

static const char *const method_labels[] = {
        [METHOD_GET] = "GET", /* and HEAD */
        [METHOD_POST] = "POST",
        [METHOD_PUT] = "PUT",
        [METHOD_PATCH] = "PATCH",
        [METHOD_DELETE] = "DELETE",
};

static void write_replies_of(
        FILE *out, const char *name, const char *method, const char *path, const uint64_t *counts)
{
        for (unsigned first = 0; first < STATUS_CLASSES; first++)
                if (counts[first] > 0)
                        metric_sample(out, name, (double)counts[first],
                                "method=\"%s\",route=\"%s\",code=\"%uxx\"", method, path, first + 1);
}

static void write_replies(FILE *out, const struct api *api)
{
        static const char name[] = "ublkd_http_requests_total";

        metric_family(out, name, METRIC_COUNTER, "HTTP requests, by route and class of the answer's status.");
        for (const struct route *route = api->routes; route->path; route++)
                write_replies_of(
                        out, name, method_labels[route->method], route->path, reply_counts_of(api, route));
        write_replies_of(out, name, "other", "none", reply_counts_of(api, NULL));
}

/* The state directory may be on a server that does not answer: another process has looked. */
static void write_sizes(FILE *out, const struct file_size sizes[_DATABASE_FILE_MAX])
{
        static const char name[] = "ublkd_store_bytes";

        metric_family(out, name, METRIC_GAUGE,
                "Size of the database and of its log, in bytes, at the last look; none while unknown.");
        for (unsigned i = 0; i < _DATABASE_FILE_MAX; i++)
                if (sizes[i].known)
                        metric_sample(out, name, (double)sizes[i].bytes, "file=\"%s\"",
                                host_database_file((enum database_file)i));
}

static void write_store(FILE *out, const struct api *api)
{
        const struct device_store *store = api->config.store;
        uint64_t phases[_PHASE_MAX] = {};

        DEVICE_STORE_FOREACH (record, store)
                phases[record->status.phase]++;
        metric_family(out, "ublkd_devices", METRIC_GAUGE, "Devices, by phase.");
        for (int i = 0; i < _PHASE_MAX; i++)
                metric_sample(out, "ublkd_devices", (double)phases[i], "phase=\"%s\"",
                        device_phase_to_string((enum device_phase)i));
        metric_alone(out, "ublkd_store_revision", METRIC_GAUGE, "Revision of the store.",
                (double)device_store_revision(store));
        metric_alone(out, "ublkd_store_events", METRIC_GAUGE, "Events that the log keeps.",
                (double)event_log_count(device_store_events(store)));
        write_sizes(out, api->config.host->database);
        if (api->config.look_at_state)
                api->config.look_at_state(api->config.userdata);
}

static void write_turns(FILE *out, const struct daemon_counters *counters)
{
        static const char name[] = "ublkd_reconcile_turn_seconds";
        double bounds[TURN_BUCKETS];

        for (size_t i = 0; i < TURN_BUCKETS; i++)
                bounds[i] = (double)(TURN_BUCKET_FIRST_USEC << 2 * i) / 1e6;
        metric_family(out, name, METRIC_HISTOGRAM,
                "Turns of devices; a turn asks the kernel, and ends when a step is done or none is due.");
        metric_histogram(out, name,
                &(struct metric_histogram){
                        .bounds = bounds,
                        .counts = counters->turn_buckets,
                        .buckets = TURN_BUCKETS,
                        .total = counters->turns,
                        .sum = (double)counters->turn_usec / 1e6,
                },
                "");
        metric_alone(out, "ublkd_reconcile_waiting", METRIC_GAUGE, "Devices that wait for their turn.",
                (double)counters->waiting);
}

static void write_steps(FILE *out, const struct daemon_counters *counters)
{
        static const char name[] = "ublkd_reconcile_steps_total";

        metric_family(out, name, METRIC_COUNTER, "Steps that ublkd carried out, by kind and result.");
        for (size_t i = 0; i < counters->step_count; i++) {
                metric_sample(out, name, (double)counters->steps[i].done, "step=\"%s\",result=\"done\"",
                        counters->steps[i].name);
                metric_sample(out, name, (double)counters->steps[i].failed, "step=\"%s\",result=\"failed\"",
                        counters->steps[i].name);
        }
}

void metrics_of_daemon(FILE *out, const struct api *api)
{
        const struct api_config *config = &api->config;
        struct daemon_counters counters = {};

        metric_family(out, "ublkd_build_info", METRIC_GAUGE, "Always 1, labelled with the version of ublkd.");
        metric_sample(out, "ublkd_build_info", 1, "version=\"%s\"", ublkd_version);
        metric_alone(out, "ublkd_ready", METRIC_GAUGE, "1 once ublkd has looked at every device.",
                !config->is_ready || config->is_ready(config->userdata));
        write_store(out, api);
        if (config->read_counters) {
                config->read_counters(config->userdata, &counters);
                write_turns(out, &counters);
                write_steps(out, &counters);
        }
        write_replies(out, api);
        metric_alone(
                out, "ublkd_http_connections", METRIC_GAUGE, "Clients that are connected.", api->connections);
        metric_alone(out, "ublkd_http_waits", METRIC_GAUGE, "Requests that wait for a device.",
                (double)wait_count(api));
        metric_alone(out, "ublkd_http_watches", METRIC_GAUGE, "Clients that watch events.",
                (double)watch_count(api));
}
