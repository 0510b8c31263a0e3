/* SPDX-License-Identifier: MIT */
/* get and list: show devices as a table, as JSON or YAML, or by name. */
#include "ublkctl/verbs/show/show.h"

#include "ublkctl/text/json_path.h"
#include "ublkctl/text/json_safe.h"
#include "ublkctl/text/terminal.h"
#include "ublkctl/text/yaml.h"
#include "ublkctl/verbs/show/columns.h"
#include "ublkctl/verbs/show/selector.h"
#include "ublkctl/client/url.h"
#include "ublkctl/verbs.h"

#include "ublkd/values/json_print.h"

#include <stdio.h>
#include <string.h>

/* ---- fetching ---- */

/* Return "/devices?limit=…" with the labels and the continue token; the caller frees it. NULL on ENOMEM. */
static char *list_path(const struct text_list *labels, const char *continue_after)
{
        char *path = strdup("/devices?limit=500");

        for (size_t i = 0; path && i < labels->count; i++)
                if (selector_is_equality(labels->items[i]))
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
                if (selectors_match(labels, item))
                        cJSON_AddItemToArray(all, item);
                else
                        cJSON_Delete(item);
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

enum exit_status show_json(const cJSON *value)
{
        char *text = json_print_indented(value);

        if (!text) {
                complain(NULL, "Out of memory.");
                return STATUS_FAILED;
        }
        json_print_safely(stdout, text);
        cJSON_free(text);
        return STATUS_OK;
}

static void show_name(const cJSON *device)
{
        const char *name = json_text(device, "name");

        print_safely(stdout, name ? name : "");
        putchar('\n');
}

enum exit_status show_data(int format, const cJSON *value)
{
        if (format != OUTPUT_YAML)
                return show_json(value);
        yaml_print(stdout, value);
        return STATUS_OK;
}

enum exit_status show_devices(struct context *context, const cJSON *devices, int format)
{
        const cJSON *device;

        if (output_is_data(format))
                return show_data(format, devices);
        if (format != OUTPUT_NAME)
                return columns_show(context, devices);
        cJSON_ArrayForEach (device, devices)
                show_name(device);
        return STATUS_OK;
}

enum exit_status show_device(struct context *context, const cJSON *device, int format)
{
        cJSON *devices = output_is_data(format) ? NULL : cJSON_CreateArray();
        enum exit_status status;

        if (output_is_data(format))
                return show_data(format, device);
        cJSON_AddItemReferenceToArray(devices, (cJSON *)device);
        status = show_devices(context, devices, format);
        cJSON_Delete(devices);
        return status;
}

/* ---- the verbs ---- */

/* Print devices as a list that 'ublkctl apply' accepts. */
static enum exit_status show_list(struct context *context, cJSON *devices)
{
        cJSON *list = cJSON_CreateObject();
        enum exit_status status = STATUS_FAILED;

        if (cJSON_AddItemReferenceToObject(list, "items", devices))
                status = show_data(context->settings->output, list);
        cJSON_Delete(list);
        return status;
}

static enum exit_status list_all(struct context *context)
{
        const struct settings *settings = context->settings;
        cJSON *devices = NULL;
        enum exit_status status = fetch_devices(context, &settings->labels, &devices);

        if (status == STATUS_OK)
                status = columns_sort(settings, devices);
        if (status == STATUS_OK && cJSON_GetArraySize(devices) == 0 && context->progress
                && !output_is_data(settings->output))
                complain(NULL, "No devices%s.", settings->labels.count ? " with these labels" : "");
        if (status == STATUS_OK)
                status = output_is_data(settings->output) ? show_list(context, devices)
                                                          : show_devices(context, devices, settings->output);
        cJSON_Delete(devices);
        return status;
}

/* Print the devices of these names; also some of them, after a failure. */
static enum exit_status show_named(struct context *context, int argc, char *argv[], int format)
{
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
        status = exit_status_merge(status, columns_sort(context->settings, devices));
        if (cJSON_GetArraySize(devices) == 1 && argc == 1)
                status = exit_status_merge(
                        status, show_device(context, cJSON_GetArrayItem(devices, 0), format));
        else if (cJSON_GetArraySize(devices) > 0)
                status = exit_status_merge(status, show_devices(context, devices, format));
        cJSON_Delete(devices);
        return status;
}

/* default_format: for devices that are named. */
static enum exit_status show(struct context *context, int argc, char *argv[], int default_format)
{
        const struct settings *settings = context->settings;
        bool in_columns = settings->columns && settings->output == OUTPUT_DEFAULT;
        bool no_table = output_is_data(settings->output) || settings->output == OUTPUT_NAME;
        enum exit_status status = columns_check(settings);

        if (status != STATUS_OK)
                return status;
        if (settings->columns && no_table) {
                complain(NULL, "--columns applies to a table only; leave it out, or give -o table or wide.");
                return STATUS_USAGE;
        }
        if (argc == 0)
                return list_all(context);
        if (settings->labels.count > 0) {
                complain(NULL, "Give either names of devices or labels (-l), not both.");
                return STATUS_USAGE;
        }
        return show_named(context, argc, argv,
                in_columns                           ? OUTPUT_TABLE
                : settings->output == OUTPUT_DEFAULT ? default_format
                                                     : settings->output);
}

enum exit_status verb_list(struct context *context, int argc, char *argv[])
{
        return show(context, argc, argv, OUTPUT_TABLE);
}

enum exit_status verb_get(struct context *context, int argc, char *argv[])
{
        return show(context, argc, argv, OUTPUT_JSON);
}
