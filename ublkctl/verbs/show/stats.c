/* SPDX-License-Identifier: MIT */
/* stats: print the counters of devices. */
#include "ublkctl/verbs/show/stats.h"

#include "ublkctl/text/amounts.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/verbs/show/show.h"
#include "ublkctl/text/table.h"
#include "ublkctl/verbs.h"

#include <stdio.h>
#include <string.h>

/* Fetch one device. *ret is NULL for a device that is not `named` and has no counters. */
static enum exit_status fetch_one(struct context *context, const char *name, bool named, cJSON **ret)
{
        _cleanup_free_ char *path = device_path(name, "/stats");
        struct request request = {.method = "GET", .path = path};
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status =
                path ? client_ask(context->client, &request, false, &answer) : STATUS_FAILED;

        if (status != STATUS_OK)
                return status;
        if (answer.status < 400) {
                *ret = TAKE_PTR(answer.json);
                return STATUS_OK;
        }
        if (!named && (is_problem(&answer, "no-such-device") || is_problem(&answer, "not-possible-now")))
                return STATUS_OK;
        return report_problem(&request, name, &answer);
}

static enum exit_status add_one(struct context *context, const char *name, bool named, cJSON *all)
{
        cJSON *one = NULL;
        enum exit_status status = fetch_one(context, name, named, &one);

        if (one)
                cJSON_AddItemToArray(all, one);
        return status;
}

static enum exit_status add_all(struct context *context, cJSON *all)
{
        cJSON *devices = NULL;
        const cJSON *device;
        enum exit_status status = fetch_devices(context, &(struct text_list){}, &devices);

        cJSON_ArrayForEach (device, devices) {
                const char *name = json_text(device, "name");

                status = name ? add_one(context, name, false, all) : STATUS_OK;
                if (status != STATUS_OK) /* the others would fail in the same way */
                        break;
        }
        cJSON_Delete(devices);
        return status;
}

enum exit_status fetch_stats(struct context *context, int count, char *const names[], cJSON **ret)
{
        cJSON *all = cJSON_CreateArray();
        enum exit_status status = STATUS_OK;

        if (!all)
                return STATUS_FAILED;
        if (count == 0)
                status = add_all(context, all);
        for (int i = 0; i < count && status != STATUS_NO_DAEMON; i++)
                status = exit_status_merge(status, add_one(context, names[i], true, all));
        *ret = all;
        return status;
}

static const struct {
        const char *op, *shown;
} ops[] = {
        {"read",        "read"        },
        {"write",       "write"       },
        {"flush",       "flush"       },
        {"discard",     "discard"     },
        {"writeZeroes", "write-zeroes"},
        {"other",       "other"       },
};

static void add_latency(struct table *table, const cJSON *op, const char *name)
{
        char path[64], text[AMOUNT_TEXT_SIZE];

        snprintf(path, sizeof(path), "latencyNs.%s", name);
        format_nanoseconds(json_number(op, "requests", 0) > 0 ? json_number(op, path, -1) : -1, text);
        table_add(table, text);
}

static void add_row(struct table *table, const char *name, const char *shown, const cJSON *op)
{
        char bytes[AMOUNT_TEXT_SIZE];
        double errors = json_number(op, "errors", 0);

        format_bytes(json_number(op, "bytes", 0), bytes);
        table_add(table, name);
        table_add(table, shown);
        table_add_format(table, "%.0f", json_number(op, "requests", 0));
        table_add(table, bytes);
        if (errors > 0) {
                char text[AMOUNT_TEXT_SIZE];

                snprintf(text, sizeof(text), "%.0f", errors);
                table_add_painted(table, PAINT_BAD, text);
        } else {
                table_add(table, "0");
        }
        table_add_format(table, "%.0f", json_number(op, "inFlight", 0));
        add_latency(table, op, "p50");
        add_latency(table, op, "p99");
        add_latency(table, op, "p999");
        add_latency(table, op, "max");
}

/* Add reads and writes of every device, and its other operations. */
static void add_rows(struct table *table, const cJSON *stats)
{
        const char *name = json_text(stats, "name");

        for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
                const cJSON *op = cJSON_GetObjectItemCaseSensitive(json_find(stats, "total.ops"), ops[i].op);
                bool always = i < 2;

                if (always || json_number(op, "requests", 0) > 0 || json_number(op, "inFlight", 0) > 0)
                        add_row(table, name, ops[i].shown, op);
        }
}

static enum exit_status show_stats(struct context *context, const cJSON *all)
{
        static const char *const headings[] = {"NAME", "OPERATION", ">REQUESTS", ">BYTES", ">ERRORS",
                ">IN FLIGHT", ">P50", ">P99", ">P99.9", ">MAX", NULL};
        _cleanup_table_ struct table *table = table_new(headings);
        const cJSON *stats;

        if (table)
                cJSON_ArrayForEach (stats, all)
                        add_rows(table, stats);
        if (table && table_print(table, stdout, context->colours, 0, 0) >= 0)
                return STATUS_OK;
        complain(NULL, "Out of memory.");
        return STATUS_FAILED;
}

enum exit_status verb_stats(struct context *context, int argc, char *argv[])
{
        cJSON *all = NULL;
        enum exit_status status = fetch_stats(context, argc, argv, &all), shown = STATUS_OK;
        const cJSON *one;

        if (output_is_data(context->settings->output) && (status == STATUS_OK || cJSON_GetArraySize(all) > 0))
                shown = show_data(context->settings->output,
                        argc == 1 && cJSON_GetArraySize(all) == 1 ? cJSON_GetArrayItem(all, 0) : all);
        else if (context->settings->output == OUTPUT_NAME)
                cJSON_ArrayForEach (one, all)
                        puts(json_text(one, "name"));
        else if (status == STATUS_OK || cJSON_GetArraySize(all) > 0)
                shown = show_stats(context, all);
        cJSON_Delete(all);
        return exit_status_merge(status, shown);
}
