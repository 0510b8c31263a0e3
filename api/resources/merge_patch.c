/* SPDX-License-Identifier: MIT */
/* JSON merge patch (RFC 7396): members of the patch replace those of the target, null removes them, objects
 * are merged member by member, and everything else is a value as a whole. */
#include "api/resources/merge_patch.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Where in the patch: a list from the inside out, on the stack of the recursion. */
struct place {
        const struct place *outer;
        const char *name; /* of a member; in an array its index */
};

DEFINE_CLEANUP(cJSON, cJSON_Delete);
#define _cleanup_json_ _cleanup_(cJSON_Delete_pointer)

/* Appends `name` as a reference token (RFC 6901) as far as there is room. */
static void append_token(char *text, size_t size, const char *name)
{
        size_t used = strlen(text);

        for (const char *c = name; *c && used + 3 < size; c++) {
                if (*c == '~' || *c == '/') {
                        text[used++] = '~';
                        text[used++] = *c == '~' ? '0' : '1';
                } else {
                        text[used++] = *c;
                }
        }
        text[used] = '\0';
}

static void write_pointer(const struct place *place, char *text, size_t size)
{
        size_t used;

        if (!place)
                return;
        write_pointer(place->outer, text, size);
        used = strlen(text);
        if (used + 3 >= size)
                return;
        strcpy(text + used, "/");
        append_token(text, size, place->name);
}

static int report_duplicate(const struct place *place, struct problem_list *problems)
{
        char pointer[512] = "";

        write_pointer(place, pointer, sizeof(pointer));
        return problem_add(problems, EINVAL, pointer, "DuplicateField", "%.64s is there twice; give it once",
                place->name);
}

static int check_names(const struct place *place, const cJSON *value, struct problem_list *problems);

static int check_members(const struct place *outer, const cJSON *object, struct problem_list *problems)
{
        const cJSON *member;

        cJSON_ArrayForEach (member, object) {
                const struct place place = {.outer = outer, .name = member->string};
                const cJSON *later = member->next;
                int r = 0;

                while (later && strcmp(later->string, member->string) != 0)
                        later = later->next;
                if (later)
                        r = report_duplicate(&place, problems);
                if (r >= 0)
                        r = check_names(&place, member, problems);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int check_items(const struct place *outer, const cJSON *array, struct problem_list *problems)
{
        const cJSON *item;
        unsigned index = 0;

        cJSON_ArrayForEach (item, array) {
                char name[16];
                const struct place place = {.outer = outer, .name = name};
                int r;

                snprintf(name, sizeof(name), "%u", index++);
                r = check_names(&place, item, problems);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reports each name that an object has twice, however deep in `value`. */
static int check_names(const struct place *place, const cJSON *value, struct problem_list *problems)
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

/* NULL when out of memory. */
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
        int r = check_names(NULL, patch, problems);
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
