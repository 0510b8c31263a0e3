/* SPDX-License-Identifier: MIT */
/* Print the metrics of each device: its state, and the counters of its workers. */
#include "api/metrics/metrics.h"
#include "api/metrics/metrics_shares.h"

#include "ublkd/model/device_stats.h"

/* Each bucket is four times as wide as the previous one: the first bound is 4.096 µs, the last 17.2 s. Each
 * bound is also a bound of the worker's buckets, so the counts are exact. */
enum { IO_BUCKETS = 12, IO_BUCKET_FIRST_SHIFT = 12 };

struct op_sample {
        double requests, bytes, errors, in_flight, seconds;
        uint64_t buckets[IO_BUCKETS];
};

struct device_sample {
        const struct device_record *record;
        bool counted;
        double rounds, unregistered, nudges, writes_waiting;
        struct op_sample ops[_STATS_OP_MAX];
        double errors[_STATS_OP_MAX][_REGION_ERRNO_MAX];
};

static void take_op(const struct op_counts *counts, struct op_sample *ret)
{
        unsigned bucket = 0;

        *ret = (struct op_sample){
                .requests = (double)counts->requests,
                .bytes = (double)counts->bytes,
                .errors = (double)counts->errors,
                .in_flight = (double)counts->in_flight,
                .seconds = (double)counts->latency_sum / 1e9,
        };
        for (unsigned i = 0; i < LATENCY_BUCKETS && bucket < IO_BUCKETS; i++) {
                while (bucket < IO_BUCKETS
                        && latency_bucket_start(i) >= UINT64_C(1) << (IO_BUCKET_FIRST_SHIFT + 2 * bucket))
                        bucket++;
                if (bucket < IO_BUCKETS)
                        ret->buckets[bucket] += counts->latency[i];
        }
}

static void take_device(
        const struct api_config *config, const struct device_record *record, struct device_sample *ret)
{
        _cleanup_device_stats_ struct device_stats *stats = NULL;

        *ret = (struct device_sample){.record = record};
        if (!config->read_stats || config->read_stats(config->userdata, record, &stats) < 0)
                return;
        ret->counted = true;
        ret->rounds = (double)stats->total.rounds;
        ret->unregistered = (double)stats->total.unregistered;
        ret->nudges = (double)stats->total.nudges;
        ret->writes_waiting = stats->writes_waiting;
        for (unsigned i = 0; i < _STATS_OP_MAX; i++) {
                take_op(&stats->total.ops[i], &ret->ops[i]);
                for (unsigned error = 0; error < _REGION_ERRNO_MAX; error++)
                        ret->errors[i][error] = (double)stats->errors[i][error];
        }
}

static void write_info(FILE *out, const struct device_sample *devices, size_t count)
{
        metric_family(
                out, "ublkd_device_info", METRIC_GAUGE, "Always 1, labelled with the target of the device.");
        for (size_t i = 0; i < count; i++) {
                const struct device_record *record = devices[i].record;

                char disk[32] = "";

                if (record->status.disk)
                        snprintf(disk, sizeof(disk), "ublkb%d", record->status.number);
                metric_sample(out, "ublkd_device_info", 1,
                        "device=\"%s\",uid=\"%s\",target=\"%s\",data_path=\"%s\",disk=\"%s\"", record->name,
                        record->uid, record->spec ? record->spec->target->name : "",
                        record->status.data_path ? record->status.data_path : "", disk);
        }
        metric_family(out, "ublkd_device_phase", METRIC_GAUGE, "1 for the phase of the device.");
        for (size_t i = 0; i < count; i++)
                for (int phase = 0; phase < _PHASE_MAX; phase++)
                        metric_sample(out, "ublkd_device_phase",
                                devices[i].record->status.phase == (enum device_phase)phase,
                                "device=\"%s\",phase=\"%s\"", devices[i].record->name,
                                device_phase_to_string((enum device_phase)phase));
}

static double restarts_of(const struct device_sample *device)
{
        return (double)device->record->status.worker.restarts;
}

static double recoveries_of(const struct device_sample *device)
{
        return (double)device->record->status.recoveries.count;
}

static double last_recovery_of(const struct device_sample *device)
{
        return device->record->status.recoveries.last_ms / 1e3;
}

static double flush_failed_of(const struct device_sample *device)
{
        return device->record->status.faults.flush > 0;
}

static double truncated_of(const struct device_sample *device)
{
        return device->record->status.faults.cut > 0;
}

static double store_full_of(const struct device_sample *device)
{
        return device->record->status.conditions.of[CONDITION_SPACE].reason == REASON_STORE_FULL;
}

static double store_low_of(const struct device_sample *device)
{
        return device->record->status.conditions.of[CONDITION_SPACE].reason == REASON_STORE_LOW;
}

static double hangs_of(const struct device_sample *device)
{
        return device->record->status.conditions.of[CONDITION_PROGRESS].status == CONDITION_FALSE;
}

/* For "time() - …": the newest error of any operation. */
static double last_error_of(const struct device_sample *device)
{
        uint64_t last = 0;

        for (unsigned i = 0; i < _STATS_OP_MAX; i++)
                if (device->record->status.errors.of[i].at > last)
                        last = device->record->status.errors.of[i].at;
        return (double)last / 1e6;
}

static double rounds_of(const struct device_sample *device)
{
        return device->rounds;
}

static double unregistered_of(const struct device_sample *device)
{
        return device->unregistered;
}

static double nudges_of(const struct device_sample *device)
{
        return device->nudges;
}

static double writes_waiting_of(const struct device_sample *device)
{
        return device->writes_waiting;
}

/* clang-format off */
static const struct {
        const char *name, *help;
        enum metric_type type;
        double (*value)(const struct device_sample *device);
        bool counted; /* only devices that have statistics */
} value_families[] = {
        {"ublkd_device_worker_restarts_total", "Workers that were started to replace another, failed attempts included.",
         METRIC_COUNTER, restarts_of, false},
        {"ublkd_device_recoveries_total", "Recoveries that ended in Live.",
         METRIC_COUNTER, recoveries_of, false},
        {"ublkd_device_last_recovery_seconds", "Time from the death of a worker until Live; 0: none yet.",
         METRIC_GAUGE, last_recovery_of, false},
        {"ublkd_device_flush_failed", "1: a flush failed, and all later flushes fail until the loss is accepted.",
         METRIC_GAUGE, flush_failed_of, false},
        {"ublkd_device_backing_truncated", "1: the backing file was cut off, and all I/O fails.",
         METRIC_GAUGE, truncated_of, false},
        {"ublkd_device_store_full", "1: a write found no room in the backing store, and none has succeeded since.",
         METRIC_GAUGE, store_full_of, false},
        {"ublkd_device_store_low", "1: the file system of the backing file has little space left, and less than the disk may need.",
         METRIC_GAUGE, store_low_of, false},
        {"ublkd_device_hangs", "1: no request of the disk, or of one of its queues, has ended for recovery.hangAfter.",
         METRIC_GAUGE, hangs_of, false},
        {"ublkd_device_last_io_error_timestamp_seconds", "When the newest request failed, in seconds since 1970; 0: none has.",
         METRIC_GAUGE, last_error_of, false},
        {"ublkd_device_writes_waiting", "Writes that wait for room in the backing store.",
         METRIC_GAUGE, writes_waiting_of, true},
        {"ublkd_device_io_rounds_total", "Turns of the loops of the device's queues.",
         METRIC_COUNTER, rounds_of, true},
        {"ublkd_device_io_unregistered_total", "Requests whose buffers the driver did not register.",
         METRIC_COUNTER, unregistered_of, true},
        {"ublkd_device_io_nudges_total", "How often no request of a kind had ended for a second.",
         METRIC_COUNTER, nudges_of, true},
};
/* clang-format on */

static void write_values(FILE *out, const struct device_sample *devices, size_t count)
{
        for (size_t f = 0; f < ARRAY_SIZE(value_families); f++) {
                metric_family(out, value_families[f].name, value_families[f].type, value_families[f].help);
                for (size_t i = 0; i < count; i++)
                        if (devices[i].counted || !value_families[f].counted)
                                metric_sample(out, value_families[f].name,
                                        value_families[f].value(&devices[i]), "device=\"%s\"",
                                        devices[i].record->name);
        }
}

/* Only devices whose path is known. */
static void write_paths(FILE *out, const struct device_sample *devices, size_t count)
{
        metric_family(out, "ublkd_device_path_leads_to_store", METRIC_GAUGE,
                "1 if the path of the spec leads to the store that is served, 0 if not.");
        for (size_t i = 0; i < count; i++) {
                const struct device_record *record = devices[i].record;
                enum condition_status status =
                        record->status.conditions.of[CONDITION_PATH_LEADS_TO_STORE].status;

                if (status == CONDITION_TRUE || status == CONDITION_FALSE)
                        metric_sample(out, "ublkd_device_path_leads_to_store", status == CONDITION_TRUE,
                                "device=\"%s\"", record->name);
        }
}

static void write_ops(FILE *out, const struct device_sample *devices, size_t count)
{
        /* clang-format off */
        static const struct {
                const char *name, *help;
                enum metric_type type;
                size_t offset; /* of a double in struct op_sample */
        } families[] = {
                {"ublkd_device_io_requests_total", "Requests that ended, with success or error.",
                 METRIC_COUNTER, offsetof(struct op_sample, requests)},
                {"ublkd_device_io_bytes_total", "Bytes of requests that succeeded.",
                 METRIC_COUNTER, offsetof(struct op_sample, bytes)},
                {"ublkd_device_io_errors_total", "Requests that failed.",
                 METRIC_COUNTER, offsetof(struct op_sample, errors)},
                {"ublkd_device_io_in_flight", "Requests in flight in the worker.",
                 METRIC_GAUGE, offsetof(struct op_sample, in_flight)},
        };
        /* clang-format on */

        for (size_t f = 0; f < ARRAY_SIZE(families); f++) {
                metric_family(out, families[f].name, families[f].type, families[f].help);
                for (size_t i = 0; i < count; i++)
                        for (size_t op = 0; devices[i].counted && op < _STATS_OP_MAX; op++)
                                metric_sample(out, families[f].name,
                                        *(const double *)((const char *)&devices[i].ops[op]
                                                          + families[f].offset),
                                        "device=\"%s\",op=\"%s\"", devices[i].record->name,
                                        stats_op_to_string(op));
        }
}

/* Only those that happened. */
static void write_errors(FILE *out, const struct device_sample *devices, size_t count)
{
        static const char name[] = "ublkd_device_io_errors_by_errno_total";

        metric_family(
                out, name, METRIC_COUNTER, "Requests that failed, by their error; none where none did.");
        for (size_t i = 0; i < count; i++)
                for (unsigned op = 0; op < _STATS_OP_MAX; op++)
                        for (unsigned error = 0; error < _REGION_ERRNO_MAX; error++)
                                if (devices[i].errors[op][error] > 0)
                                        metric_sample(out, name, devices[i].errors[op][error],
                                                "device=\"%s\",op=\"%s\",errno=\"%s\"",
                                                devices[i].record->name,
                                                stats_op_to_string((enum stats_op)op),
                                                region_errno_to_string((enum region_errno)error));
}

/* Only disks. */
static void write_sizes(FILE *out, const struct device_sample *devices, size_t count)
{
        metric_family(out, "ublkd_device_size_bytes", METRIC_GAUGE, "Size of the disk.");
        for (size_t i = 0; i < count; i++)
                if (devices[i].record->status.size > 0)
                        metric_sample(out, "ublkd_device_size_bytes", (double)devices[i].record->status.size,
                                "device=\"%s\"", devices[i].record->name);
}

/* Only operations with at least one request: most operations have none, and a histogram is long. */
static void write_latencies(FILE *out, const struct device_sample *devices, size_t count)
{
        static const char name[] = "ublkd_device_io_latency_seconds";
        double bounds[IO_BUCKETS];
        char labels[192];

        for (unsigned i = 0; i < IO_BUCKETS; i++)
                bounds[i] = (double)(UINT64_C(1) << (IO_BUCKET_FIRST_SHIFT + 2 * i)) / 1e9;
        metric_family(out, name, METRIC_HISTOGRAM,
                "Time from the arrival of a request in the worker to its answer.");
        for (size_t i = 0; i < count; i++)
                for (size_t op = 0; op < _STATS_OP_MAX; op++) {
                        const struct op_sample *sample = &devices[i].ops[op];

                        if (sample->requests == 0)
                                continue;
                        snprintf(labels, sizeof(labels), "device=\"%s\",op=\"%s\"", devices[i].record->name,
                                stats_op_to_string(op));
                        metric_histogram(out, name,
                                &(struct metric_histogram){
                                        .bounds = bounds,
                                        .counts = sample->buckets,
                                        .buckets = IO_BUCKETS,
                                        .total = (uint64_t)sample->requests,
                                        .sum = sample->seconds,
                                },
                                labels);
                }
}

int metrics_of_devices(FILE *out, const struct api *api)
{
        const struct api_config *config = &api->config;
        size_t all = device_store_count(config->store), count = 0,
               shown = all < METRICS_DEVICES_MAX ? all : METRICS_DEVICES_MAX;
        _cleanup_free_ struct device_sample *devices = calloc(shown + 1, sizeof(*devices));
        _cleanup_metrics_shares_ struct metrics_shares *shares = NULL;

        if (!devices || metrics_shares_new(api, shown, &shares) < 0)
                return -ENOMEM;
        DEVICE_STORE_FOREACH (record, config->store)
                if (metrics_shares_take(shares, record))
                        take_device(config, record, &devices[count++]);
        metric_alone(out, "ublkd_metrics_devices_omitted", METRIC_GAUGE,
                "Devices beyond the limit, which have no metrics of their own here.", (double)(all - shown));
        write_info(out, devices, count);
        write_values(out, devices, count);
        write_paths(out, devices, count);
        write_sizes(out, devices, count);
        write_ops(out, devices, count);
        write_errors(out, devices, count);
        write_latencies(out, devices, count);
        return 0;
}
