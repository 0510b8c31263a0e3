/* SPDX-License-Identifier: MIT */
/* Convert FIELD=VALUE arguments to JSON. */
#include "ublkctl/spec/assignments.h"

#include "schemas/spec_fields.h"
#include "ublkctl/text/amounts.h"
#include "ublkctl/client/call.h"
#include "ublkctl/spec/owner_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { OWNER_TEXT_SIZE = 16 };

static const char labels_prefix[] = "labels.";
/* The value "null" names a target here, and does not remove the field. */
static const char target_type[] = "target.type";

static bool is_among(const char *field, const char *const *fields)
{
        for (; field && *fields; fields++)
                if (strcmp(*fields, field) == 0)
                        return true;
        return false;
}

/* Return the field of a target that stands below others as that of one that stands alone, for the caller to free:
 * "target.children.1.path" is a path as "target.path" is. NULL on ENOMEM. */
static char *field_alone(const char *field)
{
        static const char start[] = "target.", child[] = "child.", children[] = "children.";
        char *alone = strdup(field), *rest;

        if (!alone || strncmp(alone, start, strlen(start)) != 0)
                return alone;
        rest = alone + strlen(start);
        for (;;) {
                size_t length = 0, digits;

                if (strncmp(rest, child, strlen(child)) == 0)
                        length = strlen(child);
                else if (strncmp(rest, children, strlen(children)) == 0) {
                        digits = strspn(rest + strlen(children), "0123456789");
                        if (digits > 0 && rest[strlen(children) + digits] == '.')
                                length = strlen(children) + digits + 1;
                }
                if (length == 0)
                        return alone;
                memmove(rest, rest + length, strlen(rest + length) + 1);
        }
}

/* Return whether cJSON takes a text for a number that JSON does not allow: "010", "nan". */
static bool is_odd_number(const cJSON *value, const char *text)
{
        return cJSON_IsNumber(value)
               && (strspn(text, "-0123456789.eE+") != strlen(text)
                       || (text[0] == '0' && text[1] && text[1] != '.'));
}

/* `string`: the field is a string, so 0 and 600 are strings too. Return NULL on ENOMEM. */
static cJSON *parse_value(const char *text, bool string)
{
        cJSON *value = cJSON_ParseWithOpts(text, NULL, true);
        bool fits = value && !is_odd_number(value, text)
                    && (!string || cJSON_IsString(value) || cJSON_IsNull(value));

        if (fits)
                return value;
        cJSON_Delete(value);
        return cJSON_CreateString(text);
}

/* Return the member with the first `length` bytes of `name` as its name: an object, created if missing. NULL
 * on ENOMEM. */
static cJSON *enter(cJSON *object, const char *name, size_t length)
{
        _cleanup_free_ char *key = strndup(name, length);
        cJSON *member = key ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;

        if (cJSON_IsObject(member))
                return member;
        if (!key)
                return NULL;
        cJSON_DeleteItemFromObjectCaseSensitive(object, key);
        return cJSON_AddObjectToObject(object, key);
}

static enum exit_status put(cJSON *object, const char *key, cJSON *value)
{
        cJSON_DeleteItemFromObjectCaseSensitive(object, key);
        if (value && cJSON_AddItemToObject(object, key, value))
                return STATUS_OK;
        cJSON_Delete(value);
        complain(NULL, "Out of memory.");
        return STATUS_FAILED;
}

/* Replace the name of a user or group by its number. Leave a number, null and the values of other fields as they are. */
static enum exit_status resolve_owner(
        const char *field, const char **value, char number[static OWNER_TEXT_SIZE])
{
        uint32_t id;
        int r;

        if (!field || !owner_names_has(field) || !**value || strcmp(*value, "null") == 0
                || strspn(*value, "-0123456789.") == strlen(*value))
                return STATUS_OK;
        r = owner_name_find(field, *value, &id);
        if (r < 0) {
                complain(NULL,
                        "%s=%s: cannot find the number of this name on this machine: %s; check it, or give "
                        "the number.",
                        field, *value, r == -ENOENT ? "there is none" : strerror(-r));
                return STATUS_FAILED;
        }
        snprintf(number, OWNER_TEXT_SIZE, "%" PRIu32, id);
        *value = number;
        return STATUS_OK;
}

static enum exit_status add_one(cJSON *object, const char *argument)
{
        const char *equals = strchr(argument, '=');
        _cleanup_free_ char *field = equals ? strndup(argument, (size_t)(equals - argument)) : NULL;
        _cleanup_free_ char *alone = field ? field_alone(field) : NULL;
        bool label = strncmp(argument, labels_prefix, sizeof(labels_prefix) - 1) == 0,
             type = alone && strcmp(alone, target_type) == 0;
        bool string = label || is_among(alone, spec_text_fields);
        const char *value = equals ? equals + 1 : NULL;
        char size[SIZE_ARGUMENT_SIZE], number[OWNER_TEXT_SIZE], *name = field;

        if (!equals || equals == argument || argument[0] == '.') {
                complain(NULL, "'%s' is not FIELD=VALUE, like size=10GiB or recovery.trigger=manual.",
                        argument);
                return STATUS_USAGE;
        }
        if (is_among(alone, spec_bytes_fields) && strlen(value) + strlen("iB") < sizeof(size)) {
                size_argument(value, size);
                value = size;
        }
        if (resolve_owner(field, &value, number) != STATUS_OK)
                return STATUS_FAILED;
        while (object && name) {
                char *dot = label && name != field ? NULL : strchr(name, '.');

                if (!dot)
                        break;
                object = enter(object, name, (size_t)(dot - name));
                name = dot + 1;
        }
        return put(
                object, name, object ? type ? cJSON_CreateString(value) : parse_value(value, string) : NULL);
}

/* Two values for one field are ambiguous. */
static enum exit_status check_twice(int count, char *argv[], const char *argument)
{
        size_t length = strcspn(argument, "=") + 1;

        for (int i = 0; i < count; i++)
                if (strncmp(argv[i], argument, length) == 0) {
                        complain(NULL, "A field is given twice, as '%s' and as '%s'; leave one of them out.",
                                argv[i], argument);
                        return STATUS_USAGE;
                }
        return STATUS_OK;
}

enum exit_status assignments_add(cJSON *object, int argc, char *argv[])
{
        enum exit_status status = STATUS_OK;

        for (int i = 0; i < argc && status == STATUS_OK; i++) {
                status = check_twice(i, argv, argv[i]);
                if (status == STATUS_OK)
                        status = add_one(object, argv[i]);
        }
        return status;
}
