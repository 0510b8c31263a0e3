/* SPDX-License-Identifier: MIT */
/* The "children" of a target in FIELD=VALUE arguments. */
#include "ublkctl/spec/target_lists.h"

#include <stdlib.h>
#include <string.h>

enum { LEVELS_MAX = 16, NUMBER_LENGTH_MAX = 2 };

static const char list_name[] = "children";

static enum exit_status out_of_memory(void)
{
        complain(NULL, "Out of memory.");
        return STATUS_FAILED;
}

static enum exit_status merge_object(cJSON *to, const cJSON *patch, unsigned level);

/* Return the number of an item; -1: the name is not one. */
static int number_of(const char *name)
{
        size_t length = strlen(name);

        if (length == 0 || length > NUMBER_LENGTH_MAX || strspn(name, "0123456789") != length)
                return -1;
        return (int)strtol(name, NULL, 10);
}

/* Whether the object stands for a list. */
static bool is_list(const cJSON *member)
{
        return cJSON_IsObject(member) && strcmp(member->string, list_name) == 0;
}

/* Merge one member into the item with its number, or into a new one at the end. */
static enum exit_status merge_item(cJSON *list, const cJSON *member, unsigned level)
{
        int number = number_of(member->string), count = cJSON_GetArraySize(list);
        cJSON *item;

        if (number < 0 || number > count) {
                complain(NULL,
                        "'children.%s' is not one of the children: they have the numbers 0 to %d here, and a "
                        "new one is next; give them in order.",
                        member->string, count > 0 ? count - 1 : 0);
                return STATUS_USAGE;
        }
        if (!cJSON_IsObject(member)) {
                complain(NULL,
                        "'children.%d' is a target, and has fields; give them, like children.%d.type=loop.",
                        number, number);
                return STATUS_USAGE;
        }
        item = number < count ? cJSON_GetArrayItem(list, number) : cJSON_CreateObject();
        if (!item || (number == count && !cJSON_AddItemToArray(list, item)))
                return out_of_memory();
        return merge_object(item, member, level);
}

/* Return the list that comes of `members`; NULL: *ret_status says why. stored: NULL: none. */
static cJSON *merge_list(
        const cJSON *stored, const cJSON *members, unsigned level, enum exit_status *ret_status)
{
        cJSON *list = cJSON_IsArray(stored) ? cJSON_Duplicate(stored, true) : cJSON_CreateArray();
        const cJSON *member;

        *ret_status = list ? STATUS_OK : out_of_memory();
        cJSON_ArrayForEach (member, members) {
                if (*ret_status == STATUS_OK)
                        *ret_status = merge_item(list, member, level);
        }
        if (*ret_status == STATUS_OK)
                return list;
        cJSON_Delete(list);
        return NULL;
}

/* The member `name` of `to` becomes `value`, which is taken over. */
static enum exit_status put(cJSON *to, const char *name, cJSON *value)
{
        cJSON_DeleteItemFromObjectCaseSensitive(to, name);
        if (value && cJSON_AddItemToObject(to, name, value))
                return STATUS_OK;
        cJSON_Delete(value);
        return out_of_memory();
}

static enum exit_status merge_member(cJSON *to, const cJSON *member, unsigned level)
{
        cJSON *there = cJSON_GetObjectItemCaseSensitive(to, member->string), *list;
        enum exit_status status;

        if (cJSON_IsNull(member)) {
                cJSON_DeleteItemFromObjectCaseSensitive(to, member->string);
                return STATUS_OK;
        }
        if (is_list(member)) {
                list = merge_list(there, member, level + 1, &status);
                return list ? put(to, member->string, list) : status;
        }
        if (!cJSON_IsObject(member))
                return put(to, member->string, cJSON_Duplicate(member, true));
        if (!cJSON_IsObject(there)) {
                cJSON_DeleteItemFromObjectCaseSensitive(to, member->string);
                there = cJSON_AddObjectToObject(to, member->string);
        }
        return there ? merge_object(there, member, level + 1) : out_of_memory();
}

/* As a merge patch (RFC 7396), but for lists. */
static enum exit_status merge_object(cJSON *to, const cJSON *patch, unsigned level)
{
        enum exit_status status = STATUS_OK;
        const cJSON *member;

        if (level > LEVELS_MAX) {
                complain(NULL, "A field has more than %d levels of targets; leave some out.", LEVELS_MAX);
                return STATUS_USAGE;
        }
        cJSON_ArrayForEach (member, patch) {
                if (status == STATUS_OK)
                        status = merge_member(to, member, level);
        }
        return status;
}

enum exit_status target_lists_settle(cJSON *target, const cJSON *stored, unsigned *ret_lists)
{
        unsigned lists = 0;

        for (unsigned level = 0; cJSON_IsObject(target) && level < LEVELS_MAX; level++) {
                cJSON *members = cJSON_GetObjectItemCaseSensitive(target, list_name), *list;
                enum exit_status status;

                if (cJSON_IsObject(members)) {
                        list = merge_list(
                                cJSON_GetObjectItemCaseSensitive(stored, list_name), members, level, &status);
                        if (list)
                                status = put(target, list_name, list);
                        if (status != STATUS_OK)
                                return status;
                        lists++;
                }
                target = cJSON_GetObjectItemCaseSensitive(target, "child");
                stored = cJSON_GetObjectItemCaseSensitive(stored, "child");
        }
        *ret_lists = lists;
        return STATUS_OK;
}
