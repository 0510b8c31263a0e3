/* SPDX-License-Identifier: MIT */
/* The device of a volume. */
#include "volumes/volume.h"

#include "ublkd/base/cleanup.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

/* As the schema of devices has it. */
static bool is_device_name(const char *name)
{
        static const char ends[] = "abcdefghijklmnopqrstuvwxyz0123456789";
        static const char inside[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
        size_t length = strlen(name);

        return length > 0 && length < VOLUME_DEVICE_SIZE && strspn(name, inside) == length
               && strchr(ends, name[0]) && strchr(ends, name[length - 1]);
}

enum { HASH_SIZE = 17 };

#define HASH_SEED UINT64_C(0xcbf29ce484222325)

/* FNV-1a. Only root names volumes. */
static uint64_t hash(uint64_t value, const char *text)
{
        for (; *text; text++)
                value = (value ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
        return value;
}

/* Their order does not matter. */
static uint64_t hash_options(const cJSON *options)
{
        const cJSON *option;
        uint64_t sum = 0;

        cJSON_ArrayForEach (option, options)
                sum += hash(hash(hash(HASH_SEED, option->string), "="), option->valuestring);
        return sum;
}

int volume_device(const char *volume, char ret[static VOLUME_DEVICE_SIZE])
{
        if (!volume || !*volume || strlen(volume) > VOLUME_NAME_MAX)
                return -EINVAL;
        if (is_device_name(volume))
                strcpy(ret, volume);
        else
                snprintf(ret, VOLUME_DEVICE_SIZE, "volume-%016" PRIx64, hash(HASH_SEED, volume));
        return 0;
}

/* "true", "5" and the like are what they look like; anything else is a text, and so is each label. */
static cJSON *value_of(const char *text)
{
        cJSON *value = cJSON_ParseWithOpts(text, NULL, true);

        if (cJSON_IsBool(value) || cJSON_IsNumber(value))
                return value;
        cJSON_Delete(value);
        return cJSON_CreateString(text);
}

/* Set a member by its path, as "target.keep". Return false: a member on the way is not an object, or ENOMEM. */
static bool set_member(cJSON *object, const char *path, const char *text)
{
        _cleanup_free_ char *copy = strdup(path);
        char *name = copy, *dot;
        cJSON *value;

        while (name && (dot = strchr(name, '.'))) {
                cJSON *next;

                *dot = '\0';
                next = cJSON_GetObjectItemCaseSensitive(object, name);
                object = next ? next : cJSON_AddObjectToObject(object, name);
                if (!cJSON_IsObject(object))
                        return false;
                name = dot + 1;
        }
        if (!name || !*name)
                return false;
        value = strncmp(path, "labels.", strlen("labels.")) == 0 ? cJSON_CreateString(text) : value_of(text);
        cJSON_DeleteItemFromObjectCaseSensitive(object, name);
        return value && cJSON_AddItemToObject(object, name, value);
}

struct wishes {
        const char *size, *pool, *path, *type;
};

/* Return false: `fault` has a sentence. */
static bool take_options(
        const cJSON *options, cJSON *spec, struct wishes *wishes, char fault[static VOLUME_FAULT_SIZE])
{
        const struct {
                const char *name;
                const char **text;
        } known[] = {
                {"size", &wishes->size},
                {"pool", &wishes->pool},
                {"path", &wishes->path},
                {"fs",   &wishes->type},
        };
        const cJSON *option;

        cJSON_ArrayForEach (option, options) {
                size_t i = 0;

                if (!cJSON_IsString(option)) {
                        snprintf(fault, VOLUME_FAULT_SIZE, "The option %s is not a text.", option->string);
                        return false;
                }
                while (i < ARRAY_SIZE(known) && strcmp(known[i].name, option->string) != 0)
                        i++;
                if (i < ARRAY_SIZE(known))
                        *known[i].text = option->valuestring;
                else if (strcmp(option->string, "name") == 0
                         || !set_member(spec, option->string, option->valuestring)) {
                        snprintf(fault, VOLUME_FAULT_SIZE,
                                "The option %s is unknown; use size, pool or path, fs, and members of the "
                                "spec such as target.keep.",
                                option->string);
                        return false;
                }
        }
        return true;
}

static bool fill_target(cJSON *spec, const struct wishes *wishes, char fault[static VOLUME_FAULT_SIZE])
{
        if (wishes->path && wishes->pool)
                snprintf(fault, VOLUME_FAULT_SIZE, "Give either the option pool or the option path.");
        else if (!wishes->path && !wishes->pool)
                snprintf(fault, VOLUME_FAULT_SIZE,
                        "A volume needs a pool for its image, or the path of its store: give the option pool "
                        "or path.");
        else if (wishes->pool && !wishes->size)
                snprintf(
                        fault, VOLUME_FAULT_SIZE, "A volume in a pool needs the option size, such as 10GiB.");
        else if (set_member(spec, "target.type", "loop")
                 && (wishes->path ? set_member(spec, "target.path", wishes->path)
                                  : set_member(spec, "target.pool", wishes->pool))
                 && (!wishes->size || set_member(spec, "size", wishes->size)))
                return true;
        else
                snprintf(fault, VOLUME_FAULT_SIZE, "The options do not make a spec; give fewer of them.");
        return false;
}

static bool fill_labels(cJSON *spec, const char *volume, const char *type, const cJSON *options)
{
        cJSON *labels = cJSON_GetObjectItemCaseSensitive(spec, "labels");
        char word[HASH_SIZE];

        snprintf(word, sizeof(word), "%016" PRIx64, hash_options(options));
        if (!labels)
                labels = cJSON_AddObjectToObject(spec, "labels");
        cJSON_DeleteItemFromObjectCaseSensitive(labels, VOLUME_LABEL);
        cJSON_DeleteItemFromObjectCaseSensitive(labels, VOLUME_TYPE_LABEL);
        cJSON_DeleteItemFromObjectCaseSensitive(labels, VOLUME_OPTIONS_LABEL);
        return cJSON_AddStringToObject(labels, VOLUME_LABEL, volume)
               && cJSON_AddStringToObject(labels, VOLUME_TYPE_LABEL, type)
               && cJSON_AddStringToObject(labels, VOLUME_OPTIONS_LABEL, word);
}

cJSON *volume_spec(
        const char *volume, const cJSON *options, const char *pool, char fault[static VOLUME_FAULT_SIZE])
{
        struct wishes wishes = {.type = "ext4"};
        char device[VOLUME_DEVICE_SIZE];
        cJSON *spec = cJSON_CreateObject();

        snprintf(fault, VOLUME_FAULT_SIZE, "The volume needs a name of 1 to %d bytes.", VOLUME_NAME_MAX);
        if (spec && volume_device(volume, device) >= 0 && take_options(options, spec, &wishes, fault)) {
                if (!wishes.pool && !wishes.path)
                        wishes.pool = pool;
                if (strcmp(wishes.type, "ext4") != 0 && strcmp(wishes.type, "xfs") != 0)
                        snprintf(fault, VOLUME_FAULT_SIZE, "The option fs is neither ext4 nor xfs.");
                else if (fill_target(spec, &wishes, fault) && fill_labels(spec, volume, wishes.type, options)
                         && cJSON_AddStringToObject(spec, "name", device))
                        return spec;
        }
        cJSON_Delete(spec);
        return NULL;
}

static const char *label_of_spec(const cJSON *spec, const char *name)
{
        const cJSON *labels = cJSON_GetObjectItemCaseSensitive(spec, "labels");

        return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(labels, name));
}

static const char *label_of(const cJSON *device, const char *name)
{
        return label_of_spec(cJSON_GetObjectItemCaseSensitive(device, "spec"), name);
}

bool volume_is_of_spec(const cJSON *device, const cJSON *spec)
{
        const char *one = label_of(device, VOLUME_OPTIONS_LABEL),
                   *other = label_of_spec(spec, VOLUME_OPTIONS_LABEL);

        return one && other && strcmp(one, other) == 0;
}

const char *volume_of_device(const cJSON *device)
{
        bool has_tenant = cJSON_IsString(cJSON_GetObjectItemCaseSensitive(device, "tenant"));

        return has_tenant ? NULL : label_of(device, VOLUME_LABEL); /* a tenant chooses its labels */
}

const char *volume_type(const cJSON *device)
{
        const char *type = label_of(device, VOLUME_TYPE_LABEL);

        return type ? type : "ext4";
}
