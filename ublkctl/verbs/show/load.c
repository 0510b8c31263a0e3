/* SPDX-License-Identifier: MIT */
/* The load of devices in an interval. */
#include "ublkctl/verbs/show/load.h"

#include "ublkctl/text/amounts.h"
#include "ublkctl/text/bars.h"
#include "ublkctl/text/json_safe.h"
#include "ublkctl/text/table.h"
#include "ublkctl/text/yaml.h"

#include "ublkd/base/clock.h"
#include "ublkd/values/json_print.h"
#include "ublkd/values/json_time.h"

#include <stdio.h>
#include <string.h>

/* Widths of columns, which stay from one table to the next whatever is in them. */
enum {
        NAME_NARROW = 16, /* a name, in a table that is too wide */
        TIME_WIDTH = 6,   /* "12.3us"; the headings of the other numbers are as wide as these */
        CURVE_NARROW = 4, /* the curve; where there is room it has up to LOAD_HISTORY */
};

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

/* Add the last `width` intervals. */
static void add_curve(struct table *table, const struct load *load, size_t width)
{
        size_t count = load->load_count < width ? load->load_count : width;
        char curve[CURVE_SIZE];

        curve_draw(load->loads + load->load_count - count, count, bars_have_blocks(), curve);
        table_add(table, curve);
}

/* A column with rank 0 stays; of the others the highest rank goes first. Rank 1 shortens the name. */
enum { RANK_NAME = 1, RANK_CURVE = 5, RANK_MAX = 7 };

static const struct column {
        const char *heading;
        void (*add)(struct table *table, const struct load *load); /* NULL: see add_cell() */
        unsigned rank;
        unsigned width; /* at least; 0: that of the heading */
} columns[] = {
        {"NAME",       NULL,            0,          0         },
        {">ERR/s",     add_errors,      0,          0         },
        {">READ/s",    add_reads,       0,          0         },
        {">BYTES/s",   add_read_bytes,  3,          0         },
        {">P50",       add_read_p50,    6,          TIME_WIDTH},
        {">P99",       add_read_p99,    4,          TIME_WIDTH},
        {">WRITE/s",   add_writes,      0,          0         },
        {">BYTES/s",   add_write_bytes, 3,          0         },
        {">P50",       add_write_p50,   6,          TIME_WIDTH},
        {">P99",       add_write_p99,   4,          TIME_WIDTH},
        {">OTHER/s",   add_others,      7,          0         },
        {">IN FLIGHT", add_in_flight,   0,          0         },
        {"LOAD",       NULL,            RANK_CURVE, 0         },
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

/* What is shown, and how wide. */
struct layout {
        unsigned rank; /* columns up to this one */
        size_t curve;  /* intervals */
};

static size_t name_width(const struct load *loads, size_t count, bool narrow)
{
        size_t width = 0;

        for (size_t i = 0; i < count; i++)
                if (strlen(loads[i].name) > width)
                        width = strlen(loads[i].name);
        return narrow && width > NAME_NARROW ? NAME_NARROW : width;
}

static void add_cell(struct table *table, const struct column *column, const struct load *load,
        const struct layout *layout)
{
        if (column->add)
                column->add(table, load);
        else if (column->rank == RANK_CURVE)
                add_curve(table, load, layout->curve);
        else
                add_name(table, load->name, layout->rank < RANK_NAME);
}

/* Make the table; NULL on ENOMEM. */
static struct table *make_table(const struct load *loads, size_t count, const struct layout *layout,
        const char *headings[static ARRAY_SIZE(columns) + 1])
{
        size_t widths[ARRAY_SIZE(columns)], shown = 0;
        struct table *table;

        for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
                if (columns[i].rank <= layout->rank) {
                        widths[shown] = columns[i].rank == RANK_CURVE ? layout->curve : columns[i].width;
                        headings[shown++] = columns[i].heading;
                }
        headings[shown] = NULL;
        widths[0] = name_width(loads, count, layout->rank < RANK_NAME);
        table = table_new(headings);
        for (size_t i = 0; table && i < shown; i++)
                table_reserve(table, i, widths[i]);
        for (size_t row = 0; table && row < count; row++)
                for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
                        if (columns[i].rank <= layout->rank)
                                add_cell(table, &columns[i], &loads[row], layout);
        return table;
}

/* Return how many of `width` columns the table leaves; 0: none, or it does not fit. */
static size_t left_by(const struct table *table, size_t width)
{
        return table_width(table) < width ? width - table_width(table) : 0;
}

/* Make the table that fits into `width` columns (0: no limit); NULL on ENOMEM. What is shown follows from the names and
 * the width alone, so that the columns keep their places while the numbers change. */
static struct table *make_fitting_table(const struct load *loads, size_t count, size_t width,
        const char *headings[static ARRAY_SIZE(columns) + 1])
{
        struct layout layout = {.rank = RANK_MAX, .curve = width > 0 ? CURVE_NARROW : LOAD_HISTORY};
        struct table *table = make_table(loads, count, &layout, headings);
        size_t left;

        while (table && width > 0 && layout.rank > 0 && table_width(table) > width) {
                table_free(table);
                layout.rank--;
                table = make_table(loads, count, &layout, headings);
        }
        left = table && width > 0 ? left_by(table, width) : 0;
        if (left == 0 || layout.rank < RANK_CURVE)
                return table;
        layout.curve += left;
        if (layout.curve > LOAD_HISTORY)
                layout.curve = LOAD_HISTORY;
        table_free(table);
        return make_table(loads, count, &layout, headings);
}

enum exit_status load_table_print(
        struct context *context, const struct load *loads, size_t count, size_t lines, size_t width)
{
        const char *headings[ARRAY_SIZE(columns) + 1];
        struct table *table = make_fitting_table(loads, count, width, headings);
        int r = table ? table_print(table, stdout, context->colours, lines, width) : -ENOMEM;

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
                json_print_safely(stdout, text);
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
