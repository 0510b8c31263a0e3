/* SPDX-License-Identifier: MIT */
/* latency: draw how long the requests of devices took, for each operation; with an earlier reading (--before) also
 * what has changed since. */
#include "ublkctl/spec/documents.h"
#include "ublkctl/text/amounts.h"
#include "ublkctl/text/bars.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/text/table.h"
#include "ublkctl/verbs/show/histogram.h"
#include "ublkctl/verbs/show/rate.h"
#include "ublkctl/verbs/show/show.h"
#include "ublkctl/verbs/show/stats.h"
#include "ublkctl/verbs.h"

#include "ublkd/base/utf8.h"

#include <stdio.h>
#include <string.h>

enum { SIDES_MAX = 2, BAR_LEAST = 8, RANGE_WIDTH = 21, COUNT_WIDTH = 10 };

/* In the order of --operation, after "all". */
static const char *const ops[] = {"read", "write", "flush", "discard", "writeZeroes", "other"};

static const struct percentile {
        const char *heading, *name; /* in the API */
        double fraction;
} percentiles[] = {
        {">P50",   "p50",  0.5  },
        {">P90",   "p90",  0.9  },
        {">P99",   "p99",  0.99 },
        {">P99.9", "p999", 0.999},
        {">MAX",   "max",  1    },
};

/* Requests of one operation: those of `after` that are not in `before` (NULL: all). Both are latencyNs of the API. */
struct side {
        const char *title;
        const cJSON *before, *after;
        struct histogram histogram;
};

/* One operation of one device. */
struct chart {
        const char *device, *op;
        struct side sides[SIDES_MAX];
        size_t count;
};

static double percentile_of(const struct side *side, const struct percentile *percentile)
{
        if (side->histogram.requests == 0)
                return -1;
        if (!side->before)
                return json_number(side->after, percentile->name, -1);
        return histogram_percentile(json_find(side->before, "histogram"), json_find(side->after, "histogram"),
                percentile->fraction);
}

static const cJSON *latency_of(const cJSON *ops_of, const char *op)
{
        return json_find(cJSON_GetObjectItemCaseSensitive(ops_of, op), "latencyNs");
}

static void add_side(struct chart *chart, const char *title, const cJSON *before, const cJSON *after)
{
        struct side *side = &chart->sides[chart->count++];

        *side = (struct side){.title = title, .before = before, .after = after};
        histogram_merge(json_find(before, "histogram"), json_find(after, "histogram"), &side->histogram);
}

/* now, before (or NULL): the operations of the device, as in the API. */
static struct chart make_chart(const char *device, const char *op, const cJSON *now, const cJSON *before)
{
        struct chart chart = {.device = device, .op = op};

        if (before)
                add_side(&chart, "before", NULL, latency_of(before, op));
        add_side(&chart, before ? "since" : "", before ? latency_of(before, op) : NULL, latency_of(now, op));
        return chart;
}

static bool is_empty(const struct chart *chart)
{
        for (size_t i = 0; i < chart->count; i++)
                if (chart->sides[i].histogram.requests > 0)
                        return false;
        return true;
}

/* ---- drawing ---- */

static enum exit_status print_summary(const struct context *context, const struct chart *chart)
{
        const char *headings[3 + ARRAY_SIZE(percentiles)] = {chart->op, ">REQUESTS"};
        _cleanup_table_ struct table *table = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(percentiles); i++)
                headings[2 + i] = percentiles[i].heading;
        table = table_new(headings);
        for (size_t i = 0; table && i < chart->count; i++) {
                const struct side *side = &chart->sides[i];

                table_add(table, side->title);
                table_add_format(table, "%.0f", side->histogram.requests);
                for (size_t j = 0; j < ARRAY_SIZE(percentiles); j++) {
                        char text[AMOUNT_TEXT_SIZE];

                        format_nanoseconds(percentile_of(side, &percentiles[j]), text);
                        table_add(table, text);
                }
        }
        return table && table_print(table, stdout, context->colours, 0, 0) >= 0 ? STATUS_OK : STATUS_FAILED;
}

/* Return the requests of a side in the row that begins at `from`. */
static double requests_at(const struct side *side, double from)
{
        for (size_t i = 0; i < side->histogram.count; i++)
                if (side->histogram.rows[i].from == from)
                        return side->histogram.rows[i].requests;
        return 0;
}

static void print_line(const struct chart *chart, const struct histogram_row *row, size_t width)
{
        char from[AMOUNT_TEXT_SIZE], to[AMOUNT_TEXT_SIZE];

        format_nanoseconds(row->from, from);
        format_nanoseconds(row->to, to);
        printf("%9s - %-9s", from, to);
        for (size_t i = 0; i < chart->count; i++) {
                const struct side *side = &chart->sides[i];
                double requests = requests_at(side, row->from);
                bool last = i + 1 == chart->count;
                char bar[BAR_SIZE], count[AMOUNT_TEXT_SIZE];
                size_t drawn;

                format_count(requests, count);
                bar_draw(side->histogram.most > 0 ? requests / side->histogram.most : 0, width,
                        bars_have_blocks(), bar);
                drawn = utf8_count(bar);
                printf("%*s%s%s%*s", COUNT_WIDTH, count, *bar || !last ? "  " : "", bar,
                        last || drawn > width ? 0 : (int)(width - drawn), "");
        }
        putchar('\n');
}

/* Draw the rows from the first to the last of all sides. */
static void print_bars(const struct chart *chart)
{
        double first = -1, last = -1;
        struct histogram_row row;
        unsigned columns, lines;
        size_t width;

        for (size_t i = 0; i < chart->count; i++) {
                const struct histogram *histogram = &chart->sides[i].histogram;

                if (histogram->count == 0)
                        continue;
                first = first < 0 || histogram->rows[0].from < first ? histogram->rows[0].from : first;
                last = histogram->rows[histogram->count - 1].from > last
                               ? histogram->rows[histogram->count - 1].from
                               : last;
        }
        terminal_size(STDOUT_FILENO, &columns, &lines);
        width = columns > RANGE_WIDTH ? (columns - RANGE_WIDTH) / chart->count : 0;
        width = width > COUNT_WIDTH + 3 + BAR_LEAST ? width - COUNT_WIDTH - 3 : BAR_LEAST;
        for (row = (struct histogram_row){.from = first}; first >= 0 && row.from <= last; row.from = row.to) {
                row.to = row.from > 0 ? 2 * row.from : 2;
                print_line(chart, &row, width < BAR_MAX ? width : BAR_MAX);
        }
}

/* ---- data ---- */

static bool add_percentiles(cJSON *latency, const struct side *side)
{
        for (size_t i = 0; i < ARRAY_SIZE(percentiles); i++) {
                double value = percentile_of(side, &percentiles[i]);

                if (!(value < 0 ? cJSON_AddNullToObject(latency, percentiles[i].name)
                                : cJSON_AddNumberToObject(latency, percentiles[i].name, value)))
                        return false;
        }
        return true;
}

static cJSON *fine_histogram(const struct side *side)
{
        const cJSON *after = json_find(side->after, "histogram");

        return side->before ? histogram_difference(json_find(side->before, "histogram"), after)
                            : cJSON_Duplicate(after, true);
}

/* Return a side in the form of the API; NULL on ENOMEM. */
static cJSON *side_to_json(const struct side *side)
{
        cJSON *object = cJSON_CreateObject(), *histogram = fine_histogram(side);
        cJSON *latency = cJSON_AddNumberToObject(object, "requests", side->histogram.requests)
                                 ? cJSON_AddObjectToObject(object, "latencyNs")
                                 : NULL;

        if (latency && add_percentiles(latency, side)
                && cJSON_AddItemToObject(latency, "histogram", histogram ? histogram : cJSON_CreateArray()))
                return object;
        cJSON_Delete(histogram);
        cJSON_Delete(object);
        return NULL;
}

/* ---- devices ---- */

struct latency {
        struct context *context;
        const cJSON *before; /* of --before, or NULL */
        cJSON *data;         /* what is printed at the end, for programs */
};

/* Return the operations in an output of latency or stats; NULL: there are none. */
static const cJSON *ops_in(const cJSON *reading)
{
        const cJSON *found = json_find(reading, "ops");

        return found ? found : json_find(reading, "total.ops");
}

/* Return the reading of a device: the document itself, or an item of it. */
static const cJSON *reading_of(const cJSON *document, const char *name)
{
        const cJSON *item;

        if (!cJSON_IsArray(document)) {
                const char *own = json_text(document, "name");

                return own && strcmp(own, name) == 0 ? document : NULL;
        }
        cJSON_ArrayForEach (item, document)
                if (reading_of(item, name))
                        return item;
        return NULL;
}

/* Find the earlier reading of the device in *ret_ops: NULL without --before. */
static enum exit_status find_before(const struct latency *latency, const cJSON *stats, const cJSON **ret_ops)
{
        const char *name = json_text(stats, "name"), *uid = json_text(stats, "uid"), *old;
        const cJSON *reading = latency->before ? reading_of(latency->before, name) : NULL;

        *ret_ops = NULL;
        if (!latency->before)
                return STATUS_OK;
        if (!ops_in(reading)) {
                complain(name,
                        "--before has no counters of this device; give the output of 'ublkctl latency -o "
                        "json %s'.",
                        name);
                return STATUS_USAGE;
        }
        old = json_text(reading, "uid");
        for (size_t i = 0; old && uid && strcmp(old, uid) == 0 && i < ARRAY_SIZE(ops); i++)
                if (!histogram_continues(json_find(latency_of(ops_in(reading), ops[i]), "histogram"),
                            json_find(latency_of(ops_in(stats), ops[i]), "histogram")))
                        old = NULL;
        if (!old || !uid || strcmp(old, uid) != 0) {
                complain(name, "The counters have begun again since --before: the disk was created again; "
                               "take a new reading.");
                return STATUS_REFUSED;
        }
        *ret_ops = ops_in(reading);
        return STATUS_OK;
}

static enum exit_status print_chart(struct latency *latency, const struct chart *chart)
{
        enum exit_status status = print_summary(latency->context, chart);

        print_bars(chart);
        putchar('\n');
        return status;
}

/* Add the chart to the sides of `device`: {"ops": …}, or {"before": {"ops": …}, "since": …}. */
static bool add_chart(cJSON *device, const struct chart *chart)
{
        for (size_t i = 0; i < chart->count; i++) {
                const char *title = chart->sides[i].title;
                cJSON *at = *title ? cJSON_GetObjectItemCaseSensitive(device, title) : device, *in;

                at = at ? at : cJSON_AddObjectToObject(device, title);
                in = cJSON_GetObjectItemCaseSensitive(at, "ops");
                in = in ? in : cJSON_AddObjectToObject(at, "ops");
                if (!cJSON_AddItemToObject(in, chart->op, side_to_json(&chart->sides[i])))
                        return false;
        }
        return true;
}

static enum exit_status show_charts(struct latency *latency, const cJSON *stats, const cJSON *before)
{
        const struct settings *settings = latency->context->settings;
        const char *name = json_text(stats, "name"), *uid = json_text(stats, "uid");
        cJSON *device = latency->data ? cJSON_CreateObject() : NULL;
        enum exit_status status = STATUS_OK;
        bool any = false;

        if (device) {
                cJSON_AddItemToArray(latency->data, device);
                cJSON_AddStringToObject(device, "name", name);
                cJSON_AddStringToObject(device, "uid", uid ? uid : "");
        }
        for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
                const struct chart chart = make_chart(name, ops[i], ops_in(stats), before);

                if (settings->operation > 0 && (size_t)settings->operation != i + 1)
                        continue;
                if (device) {
                        status = exit_status_merge(
                                status, add_chart(device, &chart) ? STATUS_OK : STATUS_FAILED);
                } else if (!is_empty(&chart)) {
                        if (!any) {
                                print_safely(stdout, name);
                                putchar('\n');
                        }
                        any = true;
                        status = exit_status_merge(status, print_chart(latency, &chart));
                }
        }
        if (!device && !any && latency->context->progress)
                complain(name, "No such requests yet.");
        return status;
}

static enum exit_status show_one(struct latency *latency, const cJSON *stats)
{
        const cJSON *before;
        enum exit_status status = find_before(latency, stats, &before);

        return status == STATUS_OK ? show_charts(latency, stats, before) : status;
}

enum exit_status verb_latency(struct context *context, int argc, char *argv[])
{
        const struct settings *settings = context->settings;
        struct latency latency = {.context = context};
        cJSON *all = NULL, *before = NULL;
        enum exit_status status = STATUS_OK;
        const cJSON *stats;

        if (settings->before)
                status = document_read_one(
                        settings->before, "--before reads the output of 'ublkctl latency -o json'", &before);
        if (status != STATUS_OK)
                return status;
        latency.before = before;
        latency.data = output_is_data(settings->output) ? cJSON_CreateArray() : NULL;
        status = fetch_stats(context, argc, argv, &all);
        cJSON_ArrayForEach (stats, all)
                status = exit_status_merge(status, show_one(&latency, stats));
        if (latency.data && cJSON_GetArraySize(latency.data) > 0)
                status = exit_status_merge(
                        status, show_data(settings->output, argc == 1 ? latency.data->child : latency.data));
        cJSON_Delete(latency.data);
        cJSON_Delete(before);
        cJSON_Delete(all);
        return status;
}
