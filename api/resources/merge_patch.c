/* SPDX-License-Identifier: MIT */
/* JSON merge patch (RFC 7396): members of the patch replace those of the target, null removes them, objects
 * are merged member by member, and any other value is replaced as a whole. */
#include "api/resources/merge_patch.h"

#include "ublkd/values/json_util.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { POINTER_MAX = 511 };

static int report_duplicate(const struct json_place *place, struct problem_list *problems)
{
        _cleanup_free_ char *pointer = json_place_pointer(place);

        if (!pointer)
                return -ENOMEM;
        if (strlen(pointer) > POINTER_MAX) /* a client's names can have any length */
                pointer[POINTER_MAX] = '\0';
        return problem_add(problems, EINVAL, pointer, "DuplicateField", "%.64s is given twice; give it once",
                place->name);
}

static int check_names(const struct json_place *place, const cJSON *value, struct problem_list *problems);

static int check_members(const struct json_place *outer, const cJSON *object, struct problem_list *problems)
{
        const cJSON *member;

        cJSON_ArrayForEach (member, object) {
                const struct json_place place = {.outer = outer, .name = member->string};
                int r = 0;

                if (json_name_recurs(member))
                        r = report_duplicate(&place, problems);
                if (r >= 0)
                        r = check_names(&place, member, problems);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int check_items(const struct json_place *outer, const cJSON *array, struct problem_list *problems)
{
        const cJSON *item;
        unsigned index = 0;

        cJSON_ArrayForEach (item, array) {
                char name[16];
                const struct json_place place = {.outer = outer, .name = name};
                int r;

                snprintf(name, sizeof(name), "%u", index++);
                r = check_names(&place, item, problems);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Report each name that an object has twice, at any depth of `value`. 0; -EINVAL with problems; -ENOMEM. */
static int check_names(const struct json_place *place, const cJSON *value, struct problem_list *problems)
{
        if (cJSON_IsObject(value))
                return check_members(place, value, problems);
        if (cJSON_IsArray(value))
                return check_items(place, value, problems);
        return 0;
}

static cJSON *merged(const cJSON *target, const cJSON *patch);

static bool set_member(cJSON *object, const cJSON *target, const cJSON *patch)
{
        _cleanup_json_ cJSON *value = NULL;

        if (cJSON_IsNull(patch)) {
                cJSON_DeleteItemFromObjectCaseSensitive(object, patch->string);
                return true;
        }
        value = merged(target, patch);
        if (!value)
                return false;
        if (target ? !cJSON_ReplaceItemInObjectCaseSensitive(object, patch->string, value)
                   : !cJSON_AddItemToObject(object, patch->string, value))
                return false;
        (void)TAKE_PTR(value);
        return true;
}

/* Return the merged document, or NULL on ENOMEM. */
static cJSON *merged(const cJSON *target, const cJSON *patch)
{
        _cleanup_json_ cJSON *object = NULL;
        const cJSON *member;

        if (!cJSON_IsObject(patch))
                return cJSON_Duplicate(patch, true);
        object = cJSON_IsObject(target) ? cJSON_Duplicate(target, true) : cJSON_CreateObject();
        if (!object)
                return NULL;
        cJSON_ArrayForEach (member, patch)
                if (!set_member(object, cJSON_GetObjectItemCaseSensitive(object, member->string), member))
                        return NULL;
        return TAKE_PTR(object);
}

int merge_patch(const cJSON *target, const cJSON *patch, cJSON **ret, struct problem_list *problems)
{
        size_t before = problems->count + problems->dropped;
        int r = check_names(&(struct json_place){.name = ""}, patch, problems);
        cJSON *result;

        if (r < 0)
                return r;
        if (problems->count + problems->dropped > before)
                return -EINVAL;
        result = merged(target, patch);
        if (!result)
                return -ENOMEM;
        *ret = result;
        return 0;
}
