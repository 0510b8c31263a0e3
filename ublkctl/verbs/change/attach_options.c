/* SPDX-License-Identifier: MIT */
/* The options of attach. */
#include "ublkctl/verbs/change/attach_options.h"

#include "ublkctl/client/call.h"
#include "ublkctl/spec/device_name.h"
#include "ublkctl/text/amounts.h"
#include "ublkctl/text/json_path.h"

#include "ublkd/values/quantity.h"

#include <string.h>

static enum exit_status read_bytes(const char *what, const char *text, uint64_t *ret)
{
        *ret = 0;
        if (!text || parse_bytes(text, ret) >= 0)
                return STATUS_OK;
        complain(NULL, "'%s' is not a valid %s; give bytes, or a number with KiB, MiB, GiB or TiB.", text,
                what);
        return STATUS_USAGE;
}

enum exit_status attach_options_read(const struct settings *settings, struct attach_options *ret)
{
        struct attach_options options = {.settings = settings};
        enum exit_status status = read_bytes("offset", settings->offset, &options.offset);

        if (settings->name && strlen(settings->name) >= DEVICE_NAME_SIZE) {
                complain(NULL, "The name is too long; give one of 63 bytes at most.");
                return STATUS_USAGE;
        }
        if (status == STATUS_OK)
                status = read_bytes("size", settings->size, &options.size);
        if (status == STATUS_OK && settings->size && options.size == 0) {
                complain(NULL, "A disk of 0 bytes is not possible; leave --size out for all of the file.");
                status = STATUS_USAGE;
        }
        *ret = options;
        return status;
}

static const char *direct_io_of(const struct settings *settings)
{
        return setting_get(SETTING_DIRECT_IO)->choices[settings->direct_io];
}

static bool is_given(const struct settings *settings, enum setting_id id)
{
        return settings->given & SETTING_BIT(id);
}

static bool add_size(cJSON *spec, const struct settings *settings)
{
        char size[SIZE_ARGUMENT_SIZE];

        if (!settings->size)
                return true;
        size_argument(settings->size, size); /* as the user wrote it, but for the unit */
        return is_number(size) ? cJSON_AddRawToObject(spec, "size", size) != NULL
                               : cJSON_AddStringToObject(spec, "size", size) != NULL;
}

static bool add_labels(cJSON *spec, const struct text_list *labels)
{
        cJSON *object = labels->count > 0 ? cJSON_AddObjectToObject(spec, "labels") : NULL;
        bool good = labels->count == 0 || object;

        for (size_t i = 0; good && i < labels->count; i++) {
                const char *equals = strchr(labels->items[i], '=');
                _cleanup_free_ char *key = strndup(labels->items[i], (size_t)(equals - labels->items[i]));

                if (key)
                        cJSON_DeleteItemFromObjectCaseSensitive(object, key); /* the last one counts */
                good = key && cJSON_AddStringToObject(object, key, equals + 1);
        }
        return good;
}

static bool add_target(cJSON *spec, const struct attach_options *options, const char *path)
{
        cJSON *target = cJSON_AddObjectToObject(spec, "target");

        return target && cJSON_AddStringToObject(target, "type", "loop")
               && cJSON_AddStringToObject(target, "path", path)
               && (!options->offset || cJSON_AddNumberToObject(target, "offset", (double)options->offset))
               && (!is_given(options->settings, SETTING_DIRECT_IO)
                       || cJSON_AddStringToObject(target, "directIo", direct_io_of(options->settings)));
}

cJSON *attach_options_spec(const struct attach_options *options, const char *name, const char *path)
{
        const struct settings *settings = options->settings;
        cJSON *spec = cJSON_CreateObject();

        if (spec && cJSON_AddStringToObject(spec, "name", name) && add_target(spec, options, path)
                && add_size(spec, settings) && add_labels(spec, &settings->labels)
                && (!settings->read_only || cJSON_AddTrueToObject(spec, "readOnly"))
                && (!settings->temporary || cJSON_AddTrueToObject(spec, "temporary")))
                return spec;
        cJSON_Delete(spec);
        return NULL;
}

/* Return bytes; 0: none, or not an amount. */
static uint64_t bytes_of(const cJSON *value)
{
        uint64_t bytes = 0;

        if (cJSON_IsNumber(value))
                return (uint64_t)value->valuedouble;
        if (cJSON_IsString(value))
                (void)parse_bytes(value->valuestring, &bytes);
        return bytes;
}

bool attach_options_match(const struct attach_options *options, const cJSON *device)
{
        return json_true(device, "spec.readOnly") == options->settings->read_only
               && bytes_of(json_find(device, "spec.target.offset")) == options->offset;
}

static bool has_label(const cJSON *device, const char *label)
{
        const char *equals = strchr(label, '=');
        _cleanup_free_ char *key = strndup(label, (size_t)(equals - label));
        const cJSON *value =
                key ? cJSON_GetObjectItemCaseSensitive(json_find(device, "spec.labels"), key) : NULL;

        return cJSON_IsString(value) && strcmp(value->valuestring, equals + 1) == 0;
}

static bool has_labels(const cJSON *device, const struct text_list *labels)
{
        for (size_t i = 0; i < labels->count; i++)
                if (!has_label(device, labels->items[i]))
                        return false;
        return true;
}

const char *attach_options_difference(const struct attach_options *options, const cJSON *device)
{
        const struct settings *settings = options->settings;
        const char *direct_io = json_text(device, "spec.target.directIo");
        const cJSON *size = json_find(device, "spec.size");

        if (options->size > 0 && bytes_of(size ? size : json_find(device, "status.size")) != options->size)
                return "size";
        if (!has_labels(device, &settings->labels))
                return "label";
        if (is_given(settings, SETTING_DIRECT_IO)
                && strcmp(direct_io ? direct_io : "auto", direct_io_of(settings)) != 0)
                return "direct-io";
        return settings->temporary && !json_true(device, "spec.temporary") ? "temporary" : NULL;
}
