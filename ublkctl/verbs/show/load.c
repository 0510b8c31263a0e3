/* SPDX-License-Identifier: MIT */
/* The load of devices in an interval. */
#include "ublkctl/verbs/show/load.h"

#include "ublkctl/text/amounts.h"
#include "ublkctl/text/bars.h"
#include "ublkctl/text/table.h"
#include "ublkctl/text/yaml.h"

#include "ublkd/base/clock.h"
#include "ublkd/values/json_print.h"
#include "ublkd/values/json_time.h"

#include <stdio.h>
#include <string.h>

enum { NAME_NARROW = 16 }; /* columns of a name in a table that is too wide */

/* ---- the table ---- */

static void add_count(struct table *table, double value)
{
        char text[AMOUNT_TEXT_SIZE];

        format_count(value < 0.5 && value > 0 ? 1 : (double)(uint64_t)(value + 0.5), text);
        table_add(table, text);
}

static void add_bytes(struct table *table, double value)
{
        char text[AMOUNT_TEXT_SIZE];

        format_bytes((double)(uint64_t)(value + 0.5), text);
        table_add(table, text);
}

static void add_time(struct table *table, double value)
{
        char text[AMOUNT_TEXT_SIZE];

        format_nanoseconds(value, text);
        table_add(table, text);
}

static void add_errors(struct table *table, const struct load *load)
{
        char text[AMOUNT_TEXT_SIZE];

        format_count((double)(uint64_t)(load->rate.errors + 0.999), text);
        table_add_painted(table, load->rate.errors > 0 ? PAINT_BAD : PAINT_NONE, text);
}

static void add_reads(struct table *table, const struct load *load)
{
        add_count(table, load->rate.reads);
}

static void add_read_bytes(struct table *table, const struct load *load)
{
        add_bytes(table, load->rate.read_bytes);
}

static void add_read_p50(struct table *table, const struct load *load)
{
        add_time(table, load->rate.read_p50);
}

static void add_read_p99(struct table *table, const struct load *load)
{
        add_time(table, load->rate.read_p99);
}

static void add_writes(struct table *table, const struct load *load)
{
        add_count(table, load->rate.writes);
}

static void add_write_bytes(struct table *table, const struct load *load)
{
        add_bytes(table, load->rate.write_bytes);
}

static void add_write_p50(struct table *table, const struct load *load)
{
        add_time(table, load->rate.write_p50);
}

static void add_write_p99(struct table *table, const struct load *load)
{
        add_time(table, load->rate.write_p99);
}

static void add_others(struct table *table, const struct load *load)
{
        add_count(table, load->rate.others);
}

static void add_in_flight(struct table *table, const struct load *load)
{
        char text[AMOUNT_TEXT_SIZE];

        format_count(load->rate.in_flight, text);
        table_add(table, text);
}

static void add_curve(struct table *table, const struct load *load)
{
        char curve[CURVE_SIZE];

        curve_draw(load->loads, load->load_count, bars_have_blocks(), curve);
        table_add(table, curve);
}

/* A column with rank 0 stays; of the others the highest rank goes first. Rank 1 shortens the name. */
enum { RANK_NAME = 1, RANK_MAX = 7 };

static const struct column {
        const char *heading;
        void (*add)(struct table *table, const struct load *load); /* NULL: the name */
        unsigned rank;
} columns[] = {
        {"NAME",       NULL,            0},
        {">ERR/s",     add_errors,      0},
        {">READ/s",    add_reads,       0},
        {">BYTES/s",   add_read_bytes,  3},
        {">P50",       add_read_p50,    6},
        {">P99",       add_read_p99,    4},
        {">WRITE/s",   add_writes,      0},
        {">BYTES/s",   add_write_bytes, 3},
        {">P50",       add_write_p50,   6},
        {">P99",       add_write_p99,   4},
        {">OTHER/s",   add_others,      7},
        {">IN FLIGHT", add_in_flight,   0},
        {"LOAD",       add_curve,       5},
};

static void add_name(struct table *table, const char *name, bool narrow)
{
        _cleanup_free_ char *copy =
                narrow && strlen(name) > NAME_NARROW ? strndup(name, NAME_NARROW - 1) : NULL;

        if (copy)
                table_add_format(table, "%s+", copy);
        else
                table_add(table, name);
}

/* Make the table of the columns up to `rank`; NULL on ENOMEM. */
static struct table *make_table(const struct load *loads, size_t count, unsigned rank,
        const char *headings[static ARRAY_SIZE(columns) + 1])
{
        struct table *table;
        size_t shown = 0;

        for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
                if (columns[i].rank <= rank)
                        headings[shown++] = columns[i].heading;
        headings[shown] = NULL;
        table = table_new(headings);
        for (size_t row = 0; table && row < count; row++)
                for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
                        if (columns[i].rank > rank)
                                continue;
                        if (columns[i].add)
                                columns[i].add(table, &loads[row]);
                        else
                                add_name(table, loads[row].name, rank < RANK_NAME);
                }
        return table;
}

enum exit_status load_table_print(
        struct context *context, const struct load *loads, size_t count, size_t lines, size_t width)
{
        const char *headings[ARRAY_SIZE(columns) + 1];
        unsigned rank = RANK_MAX;
        struct table *table = make_table(loads, count, rank, headings);
        int r;

        while (table && width > 0 && rank > 0 && table_width(table) > width) {
                table_free(table);
                table = make_table(loads, count, --rank, headings);
        }
        r = table ? table_print(table, stdout, context->colours, lines, width) : -ENOMEM;
        table_free(table);
        if (r >= 0)
                return STATUS_OK;
        complain(NULL, "Out of memory.");
        return STATUS_FAILED;
}

/* ---- data ---- */

/* Add a time in nanoseconds; null: no request has ended. */
static bool add_latency(cJSON *object, const char *name, double nanoseconds)
{
        return (nanoseconds < 0 ? cJSON_AddNullToObject(object, name)
                                : cJSON_AddNumberToObject(object, name, nanoseconds))
               != NULL;
}

static bool add_direction(
        cJSON *device, const char *name, double requests, double bytes, double p50, double p99)
{
        cJSON *object = cJSON_AddObjectToObject(device, name);

        return object && cJSON_AddNumberToObject(object, "requestsPerSec", requests)
               && cJSON_AddNumberToObject(object, "bytesPerSec", bytes) && add_latency(object, "p50Ns", p50)
               && add_latency(object, "p99Ns", p99);
}

static bool add_device(cJSON *devices, const struct load *load)
{
        const struct rate *rate = &load->rate;
        cJSON *device = cJSON_CreateObject();

        return cJSON_AddItemToArray(devices, device) && cJSON_AddStringToObject(device, "name", load->name)
               && cJSON_AddNumberToObject(device, "errorsPerSec", rate->errors)
               && add_direction(device, "read", rate->reads, rate->read_bytes, rate->read_p50, rate->read_p99)
               && add_direction(
                       device, "write", rate->writes, rate->write_bytes, rate->write_p50, rate->write_p99)
               && cJSON_AddNumberToObject(device, "othersPerSec", rate->others)
               && cJSON_AddNumberToObject(device, "inFlight", rate->in_flight)
               && cJSON_AddItemToObject(
                       device, "load", cJSON_CreateDoubleArray(load->loads, (int)load->load_count));
}

static bool fill(cJSON *interval, const struct load *loads, size_t count, double seconds)
{
        cJSON *devices;
        bool good = json_add_time(interval, "time", clock_usec(CLOCK_REALTIME))
                    && cJSON_AddNumberToObject(interval, "seconds", seconds);

        devices = good ? cJSON_AddArrayToObject(interval, "devices") : NULL;
        good = devices != NULL;
        for (size_t i = 0; good && i < count; i++)
                good = add_device(devices, &loads[i]);
        return good;
}

enum exit_status load_data_print(int format, const struct load *loads, size_t count, double seconds)
{
        cJSON *interval = cJSON_CreateObject();
        bool good = interval && fill(interval, loads, count, seconds);
        char *text = good && format == OUTPUT_JSON ? json_print(interval) : NULL;

        if (text) {
                puts(text);
        } else if (good && format == OUTPUT_YAML) {
                puts("---");
                yaml_print(stdout, interval);
        }
        good = good && (text || format == OUTPUT_YAML);
        cJSON_free(text);
        cJSON_Delete(interval);
        if (good)
                return STATUS_OK;
        complain(NULL, "Out of memory.");
        return STATUS_FAILED;
}
