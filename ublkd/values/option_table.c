/* SPDX-License-Identifier: MIT */
/* What can be done with an option table and no document: defaults, release, comparison, names. */
#include "ublkd/values/dispatch.h"
#include "ublkd/values/name_distance.h"

#include <assert.h>
#include <string.h>

int option_index(const struct option_table *table, const char *name)
{
        for (size_t i = 0; i < table->count; i++)
                if (strcmp(table->options[i].name, name) == 0)
                        return (int)i;
        for (size_t i = 0; table->ignored && table->ignored[i]; i++)
                if (strcmp(table->ignored[i], name) == 0)
                        return (int)(table->count + i);
        return -1;
}

const struct option_field *option_find(const struct option_table *table, const char *name)
{
        int index = option_index(table, name);

        return index >= 0 && (size_t)index < table->count ? &table->options[index] : NULL;
}

const char *option_suggest(const struct option_table *table, const char *name)
{
        const char *best = NULL;
        size_t least = SIZE_MAX;

        for (size_t i = 0; i < table->count; i++) {
                size_t distance = name_distance(name, table->options[i].name);

                /* A third of the letters may be wrong; more is a different word. */
                if (distance < least && distance <= strlen(table->options[i].name) / 3) {
                        least = distance;
                        best = table->options[i].name;
                }
        }
        return best;
}

static int set_default(const struct option_field *option, char *field)
{
        switch (option->kind) {
        case OPTION_STRING:
                if (option->preset.string) {
                        *(char **)field = strdup(option->preset.string);
                        return *(char **)field ? 0 : -ENOMEM;
                }
                return 0;
        case OPTION_BOOL:
                *(bool *)field = option->preset.integer != 0;
                return 0;
        case OPTION_INTEGER:
        case OPTION_AUTO_INTEGER:
                *(int64_t *)field = option->preset.integer;
                return 0;
        case OPTION_BYTES:
        case OPTION_DURATION:
                *(uint64_t *)field = (uint64_t)option->preset.integer;
                return 0;
        case OPTION_ENUM:
                *(int *)field = (int)option->preset.integer;
                return 0;
        case OPTION_OBJECT:
                for (size_t i = 0; i < option->table->count; i++) {
                        const struct option_field *inner = &option->table->options[i];

                        if (set_default(inner, field + inner->offset) < 0)
                                return -ENOMEM;
                }
                return 0;
        default:
                return 0; /* NULL */
        }
}

int option_defaults(const struct option_table *table, void *ret)
{
        /* The whole table as one nested object. */
        const struct option_field whole = {.kind = OPTION_OBJECT, .table = table};
        int r;

        memset(ret, 0, table->struct_size);
        r = set_default(&whole, ret);
        if (r < 0)
                dispatch_release(ret, table);
        return r;
}

void dispatch_release(void *object, const struct option_table *table)
{
        for (size_t i = 0; i < table->count; i++) {
                const struct option_field *option = &table->options[i];
                char *field = (char *)object + option->offset;

                switch (option->kind) {
                case OPTION_STRING:
                        free(*(char **)field);
                        *(char **)field = NULL;
                        break;
                case OPTION_STRING_MAP:
                case OPTION_DOCUMENT:
                case OPTION_LIST:
                case OPTION_OBJECT_MAP:
                        cJSON_Delete(*(cJSON **)field);
                        *(cJSON **)field = NULL;
                        break;
                case OPTION_OBJECT:
                        dispatch_release(field, option->table);
                        break;
                default:
                        break;
                }
        }
}

static bool strings_equal(const char *one, const char *other)
{
        return one && other ? strcmp(one, other) == 0 : one == other;
}

/* No map and an empty one say the same. */
static bool documents_equal(const cJSON *one, const cJSON *other)
{
        if (!one || !other)
                return (!one || !one->child) && (!other || !other->child);
        return cJSON_Compare(one, other, true);
}

static bool fields_equal(const struct option_field *option, const char *one, const char *other)
{
        switch (option->kind) {
        case OPTION_STRING:
                return strings_equal(*(char *const *)one, *(char *const *)other);
        case OPTION_BOOL:
                return *(const bool *)one == *(const bool *)other;
        case OPTION_INTEGER:
        case OPTION_AUTO_INTEGER:
        case OPTION_BYTES:
        case OPTION_DURATION:
                return memcmp(one, other, sizeof(int64_t)) == 0;
        case OPTION_ENUM:
                return *(const int *)one == *(const int *)other;
        case OPTION_OBJECT:
                return dispatch_equal(one, other, option->table, NULL);
        case OPTION_STRING_MAP:
        case OPTION_DOCUMENT:
        case OPTION_LIST:
        case OPTION_OBJECT_MAP:
                return documents_equal(*(cJSON *const *)one, *(cJSON *const *)other);
        default:
                assert(false);
                return false;
        }
}

bool dispatch_equal(
        const void *one, const void *other, const struct option_table *table, const char **ret_name)
{
        for (size_t i = 0; i < table->count; i++) {
                const struct option_field *option = &table->options[i];

                if (fields_equal(
                            option, (const char *)one + option->offset, (const char *)other + option->offset))
                        continue;
                if (ret_name)
                        *ret_name = option->name;
                return false;
        }
        return true;
}
