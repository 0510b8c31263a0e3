/* SPDX-License-Identifier: MIT */
/* Compare two specs, field by field. */
#include "ublkctl/spec/spec_diff.h"

#include "ublkctl/text/json_path.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/values/quantity.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct walk {
        const cJSON *target_schema;
        void (*each)(void *userdata, const char *field, const cJSON *old, const cJSON *new);
        void *userdata;
        unsigned count;
};

/* Return whether a value is an amount: a number, or a string that `parse` accepts. */
static bool amount(const cJSON *value, int (*parse)(const char *text, uint64_t *ret), uint64_t *ret)
{
        if (cJSON_IsString(value))
                return parse(value->valuestring, ret) >= 0;
        if (!cJSON_IsNumber(value) || value->valuedouble < 0 || value->valuedouble > (double)INT64_MAX / 2)
                return false;
        *ret = (uint64_t)value->valuedouble;
        return (double)*ret == value->valuedouble;
}

static bool same_amount(const cJSON *old, const cJSON *new, int (*parse)(const char *text, uint64_t *ret))
{
        uint64_t one, other;

        return amount(old, parse, &one) && amount(new, parse, &other) && one == other;
}

static bool same_value(const cJSON *old, const cJSON *new, bool label)
{
        if (!old || !new)
                return old == new;
        if (cJSON_Compare(old, new, true))
                return true;
        return !label && (same_amount(old, new, parse_bytes) || same_amount(old, new, parse_duration));
}

static void compare(
        struct walk *walk, const char *field, const cJSON *old, const cJSON *new, const cJSON *schema);

/* Compare the member `name` of both, below the path of the field. */
static void compare_member(struct walk *walk, const char *field, const char *name, const cJSON *old,
        const cJSON *new, const cJSON *schema)
{
        const cJSON *member_schema = cJSON_GetObjectItemCaseSensitive(json_find(schema, "properties"), name);
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s%s%s", field, *field ? "." : "", name) < 0) {
                path = NULL;
                return;
        }
        if (strcmp(path, "target") == 0)
                member_schema = walk->target_schema;
        compare(walk, path, cJSON_GetObjectItemCaseSensitive(old, name),
                cJSON_GetObjectItemCaseSensitive(new, name), member_schema);
}

static void compare_members(
        struct walk *walk, const char *field, const cJSON *old, const cJSON *new, const cJSON *schema)
{
        const cJSON *member;

        cJSON_ArrayForEach (member, new)
                compare_member(walk, field, member->string, old, new, schema);
        cJSON_ArrayForEach (member, old) {
                if (!cJSON_GetObjectItemCaseSensitive(new, member->string))
                        compare_member(walk, field, member->string, old, new, schema);
        }
}

static void compare(
        struct walk *walk, const char *field, const cJSON *old, const cJSON *new, const cJSON *schema)
{
        const cJSON *preset = json_find(schema, "default");

        if (cJSON_IsObject(old) || cJSON_IsObject(new)) {
                if ((!old || cJSON_IsObject(old)) && (!new || cJSON_IsObject(new))) {
                        compare_members(walk, field, old, new, schema);
                        return;
                }
        }
        old = old ? old : preset;
        new = new ? new : preset;
        if (same_value(old, new, strncmp(field, "labels.", strlen("labels.")) == 0))
                return;
        walk->count++;
        walk->each(walk->userdata, field, old, new);
}

unsigned spec_diff(const cJSON *old, const cJSON *new, const cJSON *schema, const cJSON *target_schema,
        void (*each)(void *userdata, const char *field, const cJSON *old, const cJSON *new), void *userdata)
{
        struct walk walk = {.target_schema = target_schema, .each = each, .userdata = userdata};

        compare_members(&walk, "", old, new, schema);
        return walk.count;
}
