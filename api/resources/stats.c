/* SPDX-License-Identifier: MIT */
/* GET /devices/{name}/stats: the counters of the device's worker, for each queue and in sum. */
#include "api/resources/handlers.h"
#include "api/http/named_device.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "ublkd/model/device_stats.h"

#include "ublkd/values/json_print.h"

#include <assert.h>

static const char *const op_names[] = {
        [STATS_READ] = "read",
        [STATS_WRITE] = "write",
        [STATS_FLUSH] = "flush",
        [STATS_DISCARD] = "discard",
        [STATS_WRITE_ZEROES] = "writeZeroes",
        [STATS_OTHER] = "other",
};
static_assert(ARRAY_SIZE(op_names) == _STATS_OP_MAX, "every operation has a name");

static bool add_number(cJSON *object, const char *name, uint64_t value)
{
        return json_add_integer(object, name, value);
}

static bool add_item(cJSON *array, cJSON *item)
{
        if (item && cJSON_AddItemToArray(array, item))
                return true;
        cJSON_Delete(item);
        return false;
}

/* Add [from, to, count] of each bucket that is not empty. */
static bool add_histogram(cJSON *latency, const struct op_counts *counts)
{
        cJSON *histogram = cJSON_AddArrayToObject(latency, "histogram");
        bool good = histogram != NULL;

        for (unsigned i = 0; good && i < LATENCY_BUCKETS; i++)
                if (counts->latency[i] > 0)
                        good = add_item(histogram,
                                cJSON_CreateDoubleArray((const double[]){(double)latency_bucket_start(i),
                                                                (double)latency_bucket_start(i + 1),
                                                                (double)counts->latency[i]},
                                        3));
        return good;
}

static bool add_latency(cJSON *op, const struct op_counts *counts)
{
        static const struct {
                const char *name;
                double fraction;
        } percentiles[] = {
                {"p50",  0.5  },
                {"p90",  0.9  },
                {"p99",  0.99 },
                {"p999", 0.999},
                {"max",  1    }
        };
        cJSON *latency = cJSON_AddObjectToObject(op, "latencyNs");
        bool good = latency && add_number(latency, "sum", counts->latency_sum);

        for (size_t i = 0; good && i < ARRAY_SIZE(percentiles); i++)
                good = add_number(
                        latency, percentiles[i].name, op_counts_percentile(counts, percentiles[i].fraction));
        return good && add_histogram(latency, counts);
}

static bool add_op(cJSON *ops, const char *name, const struct op_counts *counts)
{
        cJSON *op = cJSON_AddObjectToObject(ops, name);

        return op && add_number(op, "requests", counts->requests) && add_number(op, "bytes", counts->bytes)
               && add_number(op, "errors", counts->errors) && add_number(op, "inFlight", counts->in_flight)
               && add_latency(op, counts);
}

static cJSON *queue_to_json(const struct queue_counts *queue)
{
        cJSON *object = cJSON_CreateObject();
        cJSON *ops = NULL;
        bool good = object && add_number(object, "rounds", queue->rounds)
                    && add_number(object, "unregistered", queue->unregistered)
                    && add_number(object, "nudges", queue->nudges);

        if (good)
                ops = cJSON_AddObjectToObject(object, "ops");
        good = ops != NULL;
        for (size_t i = 0; good && i < _STATS_OP_MAX; i++)
                good = add_op(ops, op_names[i], &queue->ops[i]);
        if (good)
                return object;
        cJSON_Delete(object);
        return NULL;
}

/* Add what the target of the device counts, if it does. */
static bool add_of_target(cJSON *object, const struct device_record *record, const struct device_stats *stats)
{
        int number = record->spec ? target_tree_live_node(record->spec->tree) : -1;
        const struct target_node *node = number < 0 ? NULL : &record->spec->tree->nodes[number];

        return !node || node->desc->show_counts(node->options, stats->of_target, object);
}

static cJSON *stats_to_json(const struct device_record *record, const struct device_stats *stats)
{
        cJSON *object = cJSON_CreateObject(), *queues = NULL, *total = queue_to_json(&stats->total);
        bool good = object && cJSON_AddStringToObject(object, "name", record->name)
                    && cJSON_AddStringToObject(object, "uid", record->uid) && total;

        if (good && !cJSON_AddItemToObject(object, "total", total))
                good = false;
        else if (good)
                total = NULL;
        if (good)
                queues = cJSON_AddArrayToObject(object, "queues");
        good = queues != NULL;
        for (unsigned i = 0; good && i < stats->queue_count; i++)
                good = add_item(queues, queue_to_json(&stats->queues[i]));
        good = good && add_of_target(object, record, stats);
        cJSON_Delete(total);
        if (good)
                return object;
        cJSON_Delete(object);
        return NULL;
}

void handle_device_stats(struct request *request)
{
        static const struct device_stats nothing = {}; /* of a device that no worker has served */
        const struct api_config *config = &request->api->config;
        const struct device_record *record = named_device_find(request);
        _cleanup_device_stats_ struct device_stats *stats = NULL;
        int r;

        if (!record)
                return;
        r = config->read_stats ? config->read_stats(config->userdata, record, &stats) : -ENODATA;
        if (r == -EPROTO)
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "The worker has another version with another form of counters; 'ublkctl restart "
                        "%s' (POST /devices/%s/restart) replaces it.",
                        record->name, record->name);
        else if (r == -ESTALE)
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "The statistics of the worker were removed together with the runtime directory; "
                        "'ublkctl restart %s' (POST /devices/%s/restart) begins new ones.",
                        record->name, record->name);
        else if (r < 0 && r != -ENOENT && r != -ENODATA)
                reply_error(request, r, "Cannot read the statistics");
        else
                reply_json(request, MHD_HTTP_OK, stats_to_json(record, stats ? stats : &nothing));
}
