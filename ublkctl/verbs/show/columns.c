/* SPDX-License-Identifier: MIT */
/* The table of devices: its columns, which of them are shown, and the order of its rows. */
#include "ublkctl/verbs/show/columns.h"

#include "ublkctl/text/amounts.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/text/list_columns.h"
#include "ublkctl/text/table.h"
#include "ublkctl/text/times.h"
#include "ublkctl/verbs/show/await.h"

#include "ublkd/values/quantity.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- the cells ---- */

static void add_phase(struct table *table, const cJSON *device)
{
        const char *phase = json_text(device, "status.phase");

        table_add_painted(table, phase ? phase_paint(phase) : PAINT_NONE, phase);
}

static void add_node(struct table *table, const cJSON *device)
{
        table_add(table, json_text(device, "status.device"));
}

/* Return the size of the disk, or that of the spec if there is no disk; -1: unknown. */
static double size_of(const cJSON *device)
{
        const cJSON *size = json_find(device, "status.size");
        uint64_t bytes;

        if (!cJSON_IsNumber(size))
                size = json_find(device, "spec.size");
        if (cJSON_IsString(size) && parse_bytes(size->valuestring, &bytes) >= 0)
                return (double)bytes;
        return cJSON_IsNumber(size) ? size->valuedouble : -1;
}

static void add_size(struct table *table, const cJSON *device)
{
        double bytes = size_of(device);
        char text[AMOUNT_TEXT_SIZE] = "-";

        if (bytes >= 0)
                format_bytes(bytes, text);
        table_add(table, text);
}

static void add_age(struct table *table, const cJSON *device)
{
        char text[AGE_SIZE];

        time_age(json_text(device, "createdAt"), text);
        table_add(table, text);
}

/* Return a number that grows with the age; -1: unknown. */
static double age_of(const cJSON *device)
{
        int64_t seconds;

        return time_parse(json_text(device, "createdAt"), &seconds) ? 0x1p40 - (double)seconds : -1;
}

static void add_target(struct table *table, const cJSON *device)
{
        table_add(table, json_text(device, "spec.target.type"));
}

/* Return a mark for the path of a disk: "(gone)", "(elsewhere)", or "". */
static const char *backing_mark(const cJSON *device)
{
        static const struct {
                const char *reason, *mark;
        } marks[] = {
                {"PathGone",           "(gone)"     },
                {"PathLeadsElsewhere", "(elsewhere)"},
        };
        const cJSON *condition;

        cJSON_ArrayForEach (condition, json_find(device, "status.conditions")) {
                const char *type = json_text(condition, "type"), *reason = json_text(condition, "reason");

                for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
                        if (type && reason && strcmp(type, "PathLeadsToStore") == 0
                                && strcmp(reason, marks[i].reason) == 0)
                                return marks[i].mark;
        }
        return "";
}

static void add_backing(struct table *table, const cJSON *device)
{
        const char *path = json_store_path(device), *mark = backing_mark(device);

        if (path && *mark)
                table_add_format(table, "%s %s", path, mark);
        else
                table_add(table, path);
}

static void add_name(struct table *table, const cJSON *device)
{
        table_add(table, json_text(device, "name"));
}

static void add_data_path(struct table *table, const cJSON *device)
{
        table_add(table, json_text(device, "status.dataPath"));
}

static void add_number(struct table *table, double number)
{
        if (number < 0)
                table_add(table, NULL);
        else
                table_add_format(table, "%.0f", number);
}

static double worker_of(const cJSON *device)
{
        return json_number(device, "status.worker.pid", -1);
}

static void add_worker(struct table *table, const cJSON *device)
{
        add_number(table, worker_of(device));
}

static double replaced_of(const cJSON *device)
{
        return json_number(device, "status.worker.restarts", -1);
}

static void add_replaced(struct table *table, const cJSON *device)
{
        add_number(table, replaced_of(device));
}

static double recoveries_of(const cJSON *device)
{
        return json_number(device, "status.recoveries.count", -1);
}

static void add_recoveries(struct table *table, const cJSON *device)
{
        add_number(table, recoveries_of(device));
}

static double number_of(const cJSON *device)
{
        return json_number(device, "status.id", -1);
}

static void add_uid(struct table *table, const cJSON *device)
{
        table_add(table, json_text(device, "uid"));
}

static double generation_of(const cJSON *device)
{
        return json_number(device, "generation", -1);
}

static void add_generation(struct table *table, const cJSON *device)
{
        add_number(table, generation_of(device));
}

static void add_labels(struct table *table, const cJSON *device)
{
        const cJSON *label, *labels = json_find(device, "spec.labels");
        _cleanup_free_ char *text = NULL;

        cJSON_ArrayForEach (label, labels) {
                char *longer;

                if (asprintf(&longer, "%s%s%s=%s", text ? text : "", text ? "," : "", label->string,
                            cJSON_IsString(label) ? label->valuestring : "")
                        < 0)
                        break;
                free(text);
                text = longer;
        }
        table_add(table, text);
}

/* "False" of a condition beside Ready is something that is wrong. Where the path leads counts for a disk that is
 * served: else the reason of Ready names the fault of the path. */
static bool is_trouble(const cJSON *device, const cJSON *condition)
{
        const char *type = json_text(condition, "type"), *status = json_text(condition, "status");

        return type && status && strcmp(status, "False") == 0 && strcmp(type, "Ready") != 0
               && (strcmp(type, "PathLeadsToStore") != 0 || device_is_ready(device));
}

/* Joins a reason to those in *text. False: out of memory; what is there stays. */
static bool join_reason(char **text, const char *reason, const char *more)
{
        char *longer;

        if (asprintf(&longer, "%s%s%s%s", *text ? *text : "", *text ? "," : "", reason, more) < 0)
                return false;
        free(*text);
        *text = longer;
        return true;
}

/* The reason of Ready, unless it says no more than the phase; then what else is wrong. NULL: there is nothing to
 * say. The caller's. */
static char *reasons_of(const cJSON *device)
{
        const char *reason = json_text(json_condition(device, "Ready"), "reason"),
                   *phase = json_text(device, "status.phase");
        bool is_plain = reason && phase && strcmp(reason, phase) == 0;
        bool left_served =
                device_has_reason(device, "RecordOutdated") && json_find(device, "status.worker.pid");
        const cJSON *condition;
        char *text = NULL;

        if (reason && !is_plain)
                (void)join_reason(&text, reason, left_served ? "(served)" : "");
        cJSON_ArrayForEach (condition, json_find(device, "status.conditions"))
                if (is_trouble(device, condition) && json_text(condition, "reason"))
                        (void)join_reason(&text, json_text(condition, "reason"), "");
        if (json_true(device, "status.needsRestart"))
                (void)join_reason(&text, "NeedsRestart", "");
        return text;
}

static void add_source(struct table *table, const cJSON *device)
{
        const char *source = json_text(device, "source");

        table_add(table, source ? source : "-");
}

static void add_reason(struct table *table, const cJSON *device)
{
        _cleanup_free_ char *text = reasons_of(device);
        const cJSON *condition;
        bool trouble = false;

        cJSON_ArrayForEach (condition, json_find(device, "status.conditions"))
                trouble = trouble || is_trouble(device, condition);
        table_add_painted(table, trouble ? PAINT_BAD : PAINT_NONE, text);
}

/* Whether a device has more to say than its phase. */
static bool has_reasons(const cJSON *devices)
{
        const cJSON *device;
        bool found = false;

        cJSON_ArrayForEach (device, devices) {
                _cleanup_free_ char *text = reasons_of(device);

                found = found || text;
        }
        return found;
}

/* ---- the columns ---- */

enum { HEADING_SIZE = 24 };

enum column_use {
        COLUMN_ALWAYS,
        COLUMN_WIDE,     /* only with -o wide */
        COLUMN_TROUBLES, /* also where a device has more to say than its phase */
        COLUMN_NAMED,    /* only if --columns names it */
        _COLUMN_USE_MAX
};

static const struct column {
        void (*add)(struct table *table, const cJSON *device);
        enum column_use use;
        double (*number)(const cJSON *device); /* to sort by; NULL: the text of the cell */
        bool right;                            /* aligned to the right */
} columns[] = {
        [LIST_NAME] = {.add = add_name, .use = COLUMN_ALWAYS},
        [LIST_PHASE] = {.add = add_phase, .use = COLUMN_ALWAYS},
        [LIST_DEVICE] = {.add = add_node, .use = COLUMN_ALWAYS, .number = number_of},
        [LIST_SIZE] = {.add = add_size, .use = COLUMN_ALWAYS, .number = size_of, .right = true},
        [LIST_TARGET] = {.add = add_target, .use = COLUMN_ALWAYS},
        [LIST_BACKING] = {.add = add_backing, .use = COLUMN_ALWAYS},
        [LIST_AGE] = {.add = add_age, .use = COLUMN_ALWAYS, .number = age_of, .right = true},
        [LIST_DATAPATH] = {.add = add_data_path, .use = COLUMN_WIDE},
        [LIST_WORKER] = {.add = add_worker, .use = COLUMN_WIDE, .number = worker_of, .right = true},
        [LIST_REPLACED] = {.add = add_replaced, .use = COLUMN_WIDE, .number = replaced_of, .right = true},
        [LIST_RECOVERIES] = {.add = add_recoveries,
                       .use = COLUMN_WIDE,
                       .number = recoveries_of,
                       .right = true},
        [LIST_LABELS] = {.add = add_labels, .use = COLUMN_WIDE},
        [LIST_SOURCE] = {.add = add_source, .use = COLUMN_WIDE},
        [LIST_REASON] = {.add = add_reason, .use = COLUMN_TROUBLES},
        [LIST_UID] = {.add = add_uid, .use = COLUMN_NAMED},
        [LIST_GENERATION] = {.add = add_generation,
                       .use = COLUMN_NAMED,
                       .number = generation_of,
                       .right = true},
};
static_assert(ARRAY_SIZE(columns) == _LIST_COLUMN_MAX, "every column has its row");

/* Find a column by the first `length` bytes of a word, in any case. On failure print the names of all. */
static const struct column *find_column(const char *option, const char *word, size_t length)
{
        for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
                if (strlen(list_column_names[i]) == length
                        && strncasecmp(list_column_names[i], word, length) == 0)
                        return &columns[i];
        begin_line(NULL);
        fprintf(stderr, "--%s: there is no column '", option);
        print_safely(stderr, word);
        fputs("'; give some of", stderr);
        for (size_t i = 0; list_column_names[i]; i++)
                fprintf(stderr, "%s %s", i ? "," : "", list_column_names[i]);
        fputs(".\n", stderr);
        return NULL;
}

/* The columns of a table, in their order. */
struct choice {
        const struct column *columns[ARRAY_SIZE(columns)];
        size_t count;
};

/* Add a column, once. */
static void choose(struct choice *choice, const struct column *column)
{
        for (size_t i = 0; i < choice->count; i++)
                if (choice->columns[i] == column)
                        return;
        choice->columns[choice->count++] = column;
}

static void choose_usual(struct choice *choice, const cJSON *devices, bool wide)
{
        const bool shown[_COLUMN_USE_MAX] = {[COLUMN_ALWAYS] = true,
                [COLUMN_WIDE] = wide,
                [COLUMN_TROUBLES] = wide || has_reasons(devices)};

        for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
                if (shown[columns[i].use])
                        choose(choice, &columns[i]);
}

/* Add the columns of a list with commas. False: one is unknown. */
static bool choose_named(struct choice *choice, const char *list)
{
        for (;;) {
                size_t length = strcspn(list, ",");
                const struct column *column = find_column("columns", list, length);

                if (!column)
                        return false;
                choose(choice, column);
                if (!list[length])
                        return true;
                list += length + 1;
        }
}

static bool choose_columns(const struct settings *settings, const cJSON *devices, struct choice *ret)
{
        const char *named = settings->columns;
        bool also = named && *named == '+';

        *ret = (struct choice){};
        if (!named || also)
                choose_usual(ret, devices, settings->output == OUTPUT_WIDE);
        return !named || choose_named(ret, named + also);
}

enum exit_status columns_check(const struct settings *settings)
{
        const char *sort = settings->sort;
        struct choice choice;

        if (sort && !find_column("sort", sort + (*sort == '-'), strlen(sort + (*sort == '-'))))
                return STATUS_USAGE;
        return choose_columns(settings, NULL, &choice) ? STATUS_OK : STATUS_USAGE;
}

enum exit_status columns_show(struct context *context, const cJSON *devices)
{
        const char *headings[ARRAY_SIZE(columns) + 1] = {};
        char texts[ARRAY_SIZE(columns)][HEADING_SIZE];
        _cleanup_table_ struct table *table = NULL;
        struct choice choice;
        const cJSON *device;

        if (!choose_columns(context->settings, devices, &choice))
                return STATUS_USAGE;
        for (size_t i = 0; i < choice.count; i++) {
                snprintf(texts[i], HEADING_SIZE, "%s%s", choice.columns[i]->right ? ">" : "",
                        list_column_names[choice.columns[i] - columns]);
                headings[i] = texts[i];
        }
        table = table_new(headings);
        if (table)
                cJSON_ArrayForEach (device, devices)
                        for (size_t i = 0; i < choice.count; i++)
                                choice.columns[i]->add(table, device);
        if (table && table_print(table, stdout, context->colours, 0, 0) >= 0)
                return STATUS_OK;
        complain(NULL, "Out of memory.");
        return STATUS_FAILED;
}

/* ---- the order ---- */

struct sorted {
        cJSON *device;
        struct table *cell; /* with its text; NULL: `number` counts */
        double number;
        size_t index; /* equal ones keep their order */
        bool descending;
};

static int compare(const void *one, const void *other)
{
        const struct sorted *a = one, *b = other;
        int order = a->cell && b->cell ? strcasecmp(table_cell(a->cell, 0), table_cell(b->cell, 0))
                                       : (a->number > b->number) - (a->number < b->number);

        if (order == 0)
                return (a->index > b->index) - (a->index < b->index);
        return a->descending ? -order : order;
}

static bool make_key(const struct column *column, struct sorted *sorted)
{
        static const char *const headings[] = {"", NULL};

        if (column->number) {
                sorted->number = column->number(sorted->device);
                return true;
        }
        sorted->cell = table_new(headings);
        if (sorted->cell)
                column->add(sorted->cell, sorted->device);
        return sorted->cell != NULL;
}

enum exit_status columns_sort(const struct settings *settings, cJSON *devices)
{
        size_t count = (size_t)cJSON_GetArraySize(devices), keyed = 0;
        bool descending = settings->sort && *settings->sort == '-', good = true;
        const char *name = settings->sort ? settings->sort + descending : NULL;
        const struct column *column = name ? find_column("sort", name, strlen(name)) : NULL;
        _cleanup_free_ struct sorted *sorted = column ? calloc(count + 1, sizeof(*sorted)) : NULL;

        if (!name)
                return STATUS_OK;
        if (!column)
                return STATUS_USAGE;
        for (; sorted && good && keyed < count; keyed++) {
                sorted[keyed] = (struct sorted){.device = cJSON_DetachItemFromArray(devices, 0),
                        .index = keyed,
                        .descending = descending};
                good = make_key(column, &sorted[keyed]);
        }
        if (sorted && good)
                qsort(sorted, keyed, sizeof(*sorted), compare);
        for (size_t i = 0; i < keyed; i++) {
                table_free(sorted[i].cell);
                cJSON_AddItemToArray(devices, sorted[i].device);
        }
        return sorted && good ? STATUS_OK : STATUS_FAILED;
}
