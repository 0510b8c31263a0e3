/* SPDX-License-Identifier: MIT */
/* get and list: show devices as a table, as JSON, or by name. */
#include "ublkctl/verbs/show/show.h"

#include "ublkctl/text/amounts.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/text/table.h"
#include "ublkctl/verbs/show/await.h"
#include "ublkctl/client/url.h"
#include "ublkctl/verbs.h"

#include "ublkd/values/json_print.h"
#include "ublkd/values/quantity.h"

#include <stdio.h>
#include <string.h>

/* ---- fetching ---- */

/* Return "/devices?limit=…" with the labels and the continue token; the caller frees it. NULL on ENOMEM. */
static char *list_path(const struct text_list *labels, const char *continue_after)
{
        char *path = strdup("/devices?limit=500");

        for (size_t i = 0; path && i < labels->count; i++)
                path = url_add_parameter(path, "label", labels->items[i]);
        return path && continue_after ? url_add_parameter(path, "continue", continue_after) : path;
}

/* Move the items of one page to the end of `all`. *ret_continue: token of the next page, or NULL. */
static enum exit_status fetch_page(
        struct context *context, const struct text_list *labels, cJSON *all, char **continue_after)
{
        _cleanup_free_ char *path = list_path(labels, *continue_after);
        struct request request = {.method = "GET", .path = path};
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status = path ? call(context, &request, NULL, &answer) : STATUS_FAILED;
        cJSON *items, *item;
        const char *next;

        if (status != STATUS_OK)
                return status;
        items = cJSON_GetObjectItemCaseSensitive(answer.json, "items");
        while ((item = cJSON_DetachItemFromArray(items, 0)))
                cJSON_AddItemToArray(all, item);
        next = json_text(answer.json, "continue");
        free(*continue_after);
        *continue_after = next ? strdup(next) : NULL;
        return !next || *continue_after ? STATUS_OK : STATUS_FAILED;
}

enum exit_status fetch_devices(struct context *context, const struct text_list *labels, cJSON **ret)
{
        _cleanup_free_ char *continue_after = NULL;
        cJSON *all = cJSON_CreateArray();
        enum exit_status status = all ? STATUS_OK : STATUS_FAILED;

        do {
                if (status == STATUS_OK)
                        status = fetch_page(context, labels, all, &continue_after);
        } while (status == STATUS_OK && continue_after);
        if (status == STATUS_OK)
                *ret = all;
        else
                cJSON_Delete(all);
        return status;
}

/* ---- printing ---- */

/* Print four spaces for each of cJSON's tabs, of which one also follows each colon. In strings a tab is
 * written \\t. */
static void print_indented(const char *text)
{
        for (const char *at = text; *at; at++) {
                if (*at != '\t')
                        putchar(*at);
                else
                        fputs(at > text && at[-1] == ':' ? " " : "    ", stdout);
        }
        putchar('\n');
}

enum exit_status show_json(const cJSON *value)
{
        char *text = json_print_indented(value);

        if (!text) {
                complain(NULL, "Out of memory.");
                return STATUS_FAILED;
        }
        print_indented(text);
        cJSON_free(text);
        return STATUS_OK;
}

static void add_phase(struct table *table, const cJSON *device)
{
        const char *phase = json_text(device, "status.phase");

        table_add_painted(table, phase ? phase_paint(phase) : PAINT_NONE, phase);
}

static void add_node(struct table *table, const cJSON *device)
{
        table_add(table, json_text(device, "status.device"));
}

/* Add the size of the disk, or of the spec if there is no disk. */
static void add_size(struct table *table, const cJSON *device)
{
        const cJSON *size = json_find(device, "status.size");
        char text[AMOUNT_TEXT_SIZE];
        uint64_t bytes;

        if (!cJSON_IsNumber(size))
                size = json_find(device, "spec.size");
        if (cJSON_IsString(size) && parse_bytes(size->valuestring, &bytes) >= 0)
                format_bytes((double)bytes, text);
        else if (cJSON_IsNumber(size))
                format_bytes(size->valuedouble, text);
        else
                strcpy(text, "-");
        table_add(table, text);
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
        const char *path = json_text(device, "spec.target.path"), *mark = backing_mark(device);

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

static void add_number(struct table *table, const cJSON *device, const char *path)
{
        double number = json_number(device, path, -1);

        if (number < 0)
                table_add(table, NULL);
        else
                table_add_format(table, "%.0f", number);
}

static void add_worker(struct table *table, const cJSON *device)
{
        add_number(table, device, "status.worker.pid");
}

static void add_replaced(struct table *table, const cJSON *device)
{
        add_number(table, device, "status.worker.restarts");
}

static void add_recoveries(struct table *table, const cJSON *device)
{
        add_number(table, device, "status.recoveries.count");
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

/* "False" of a condition beside Ready is something that is wrong. Where the path leads stands beside the path. */
static bool is_trouble(const cJSON *condition)
{
        const char *type = json_text(condition, "type"), *status = json_text(condition, "status");

        return type && status && strcmp(status, "False") == 0 && strcmp(type, "Ready") != 0
               && strcmp(type, "PathLeadsToStore") != 0;
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
                if (is_trouble(condition) && json_text(condition, "reason"))
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
                trouble = trouble || is_trouble(condition);
        table_add_painted(table, trouble ? PAINT_BAD : PAINT_NONE,
                text ? text : json_text(json_condition(device, "Ready"), "reason"));
}

/* Whether a device has more to say than its phase. */
static bool has_reasons(const cJSON *devices)
{
        const cJSON *device;
        bool found = false;

        if (!cJSON_IsArray(devices)) {
                _cleanup_free_ char *text = reasons_of(devices);

                return text != NULL;
        }
        cJSON_ArrayForEach (device, devices) {
                _cleanup_free_ char *text = reasons_of(device);

                found = found || text;
        }
        return found;
}

enum column_use {
        COLUMN_ALWAYS,
        COLUMN_WIDE,     /* only with -o wide */
        COLUMN_TROUBLES, /* also where a device has more to say than its phase */
        _COLUMN_USE_MAX
};

static const struct column {
        const char *heading;
        void (*add)(struct table *table, const cJSON *device);
        enum column_use use;
} columns[] = {
        {"NAME",        add_name,       COLUMN_ALWAYS  },
        {"PHASE",       add_phase,      COLUMN_ALWAYS  },
        {"DEVICE",      add_node,       COLUMN_ALWAYS  },
        {">SIZE",       add_size,       COLUMN_ALWAYS  },
        {"TARGET",      add_target,     COLUMN_ALWAYS  },
        {"BACKING",     add_backing,    COLUMN_ALWAYS  },
        {"DATAPATH",    add_data_path,  COLUMN_WIDE    },
        {">WORKER",     add_worker,     COLUMN_WIDE    },
        {">REPLACED",   add_replaced,   COLUMN_WIDE    },
        {">RECOVERIES", add_recoveries, COLUMN_WIDE    },
        {"LABELS",      add_labels,     COLUMN_WIDE    },
        {"SOURCE",      add_source,     COLUMN_WIDE    },
        {"REASON",      add_reason,     COLUMN_TROUBLES},
};

/* Which columns a table has. */
struct columns_shown {
        bool of[_COLUMN_USE_MAX];
};

static void add_row(struct table *table, const cJSON *device, const struct columns_shown *shown)
{
        for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
                if (shown->of[columns[i].use])
                        columns[i].add(table, device);
}

static enum exit_status show_table(struct context *context, const cJSON *devices, bool wide)
{
        const struct columns_shown shown = {
                .of = {[COLUMN_ALWAYS] = true,
                       [COLUMN_WIDE] = wide,
                       [COLUMN_TROUBLES] = wide || has_reasons(devices)}
        };
        const char *headings[ARRAY_SIZE(columns) + 1] = {};
        _cleanup_table_ struct table *table = NULL;
        const cJSON *device;
        size_t count = 0;

        for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
                if (shown.of[columns[i].use])
                        headings[count++] = columns[i].heading;
        table = table_new(headings);
        if (table && cJSON_IsArray(devices))
                cJSON_ArrayForEach (device, devices)
                        add_row(table, device, &shown);
        else if (table)
                add_row(table, devices, &shown);
        if (table && table_print(table, stdout, context->colours, 0, 0) >= 0)
                return STATUS_OK;
        complain(NULL, "Out of memory.");
        return STATUS_FAILED;
}

static void show_name(const cJSON *device)
{
        const char *name = json_text(device, "name");

        print_safely(stdout, name ? name : "");
        putchar('\n');
}

enum exit_status show_devices(struct context *context, const cJSON *devices, enum output_format format)
{
        const cJSON *device;

        if (format == OUTPUT_JSON)
                return show_json(devices);
        if (format != OUTPUT_NAME)
                return show_table(context, devices, format == OUTPUT_WIDE);
        if (!cJSON_IsArray(devices)) {
                show_name(devices);
                return STATUS_OK;
        }
        cJSON_ArrayForEach (device, devices)
                show_name(device);
        return STATUS_OK;
}

/* ---- the verbs ---- */

enum exit_status verb_list(struct context *context, int argc _unused_, char *argv[] _unused_)
{
        cJSON *devices = NULL, *list;
        enum exit_status status = fetch_devices(context, &context->settings->labels, &devices);

        if (status != STATUS_OK)
                return status;
        if (context->settings->output != OUTPUT_JSON) {
                if (cJSON_GetArraySize(devices) == 0 && context->progress)
                        complain(NULL, "No devices%s.",
                                context->settings->labels.count ? " with these labels" : "");
                status = show_devices(context, devices, context->settings->output);
                cJSON_Delete(devices);
                return status;
        }
        list = cJSON_CreateObject();
        if (!cJSON_AddItemToObject(list, "items", devices))
                cJSON_Delete(devices);
        status = show_json(list);
        cJSON_Delete(list);
        return status;
}

enum exit_status verb_get(struct context *context, int argc, char *argv[])
{
        enum output_format format = context->settings->output;
        cJSON *devices = cJSON_CreateArray();
        enum exit_status status = devices ? STATUS_OK : STATUS_FAILED;

        for (int i = 0; i < argc && devices; i++) {
                _cleanup_answer_ struct answer answer = {};
                enum exit_status one = call_get(context, argv[i], &answer);

                status = exit_status_merge(status, one);
                if (one == STATUS_OK)
                        cJSON_AddItemToArray(devices, TAKE_PTR(answer.json));
                else if (one == STATUS_NO_DAEMON)
                        break;
        }
        if (format == OUTPUT_DEFAULT)
                format = OUTPUT_JSON;
        if (cJSON_GetArraySize(devices) == 1 && argc == 1)
                status = exit_status_merge(
                        status, show_devices(context, cJSON_GetArrayItem(devices, 0), format));
        else if (cJSON_GetArraySize(devices) > 0)
                status = exit_status_merge(status, show_devices(context, devices, format));
        cJSON_Delete(devices);
        return status;
}
