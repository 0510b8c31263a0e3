/* SPDX-License-Identifier: MIT */
/* The backing stores of a disk that has several. */
#include "ublkd/proto/store_list.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/proto/json_u64.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum field_kind {
        FIELD_BOOL,
        FIELD_BASIS, /* enum backing_basis */
        FIELD_U32,
        FIELD_U64,   /* as a decimal string */
        FIELD_TOKEN, /* char[BACKING_TOKEN_SIZE] */
};

struct field {
        const char *name;
        enum field_kind kind;
        size_t offset; /* into struct listed_store */
        double max;    /* FIELD_BASIS, FIELD_U32 */
        bool in[_STORE_LIST_USE_MAX];
};

#define AT(member) offsetof(struct listed_store, member)
#define IN_CONFIG {[STORE_LIST_IN_CONFIG] = true}
#define IN_BACKING {[STORE_LIST_IN_BACKING] = true}
#define IN_BOTH {true, true}

/* clang-format off */
static const struct field fields[] = {
        {.name = "boot", .kind = FIELD_TOKEN, .offset = AT(identity.boot), .in = IN_BOTH},
        {.name = "lasting", .kind = FIELD_TOKEN, .offset = AT(identity.lasting), .in = IN_BOTH},
        {.name = "basis", .kind = FIELD_BASIS, .offset = AT(identity.basis), .max = _BACKING_BASIS_MAX - 1, .in = IN_BOTH},
        {.name = "isDisk", .kind = FIELD_BOOL, .offset = AT(identity.is_disk), .in = IN_BOTH},
        {.name = "fd", .kind = FIELD_BOOL, .offset = AT(has_fd), .in = IN_BOTH},
        {.name = "inThisBoot", .kind = FIELD_BOOL, .offset = AT(in_this_boot), .in = IN_CONFIG},
        {.name = "served", .kind = FIELD_BOOL, .offset = AT(was_served), .in = IN_CONFIG},
        {.name = "shared", .kind = FIELD_BOOL, .offset = AT(is_shared), .in = IN_CONFIG},
        {.name = "user", .kind = FIELD_U32, .offset = AT(user), .max = UINT32_MAX - 1, .in = IN_CONFIG},
        {.name = "claimed", .kind = FIELD_BOOL, .offset = AT(claimed), .in = IN_BACKING},
        {.name = "major", .kind = FIELD_U32, .offset = AT(major), .max = UINT32_MAX, .in = IN_BACKING},
        {.name = "minor", .kind = FIELD_U32, .offset = AT(minor), .max = UINT32_MAX, .in = IN_BACKING},
        {.name = "inode", .kind = FIELD_U64, .offset = AT(inode), .in = IN_BACKING},
};
/* clang-format on */

/* ---- writing ---- */

static bool write_field(cJSON *object, const struct field *field, const struct listed_store *store)
{
        const void *value = (const char *)store + field->offset;

        switch (field->kind) {
        case FIELD_BOOL:
                return cJSON_AddBoolToObject(object, field->name, *(const bool *)value);
        case FIELD_BASIS:
                return cJSON_AddNumberToObject(object, field->name, *(const enum backing_basis *)value);
        case FIELD_U32:
                return cJSON_AddNumberToObject(object, field->name, *(const uint32_t *)value);
        case FIELD_U64:
                return json_add_u64(object, field->name, *(const uint64_t *)value);
        case FIELD_TOKEN:
                return cJSON_AddStringToObject(object, field->name, value);
        }
        return false;
}

static bool write_store(cJSON *array, const struct listed_store *store, enum store_list_use use)
{
        cJSON *item = cJSON_CreateObject();

        if (!cJSON_AddItemToArray(array, item)) {
                cJSON_Delete(item);
                return false;
        }
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                if (fields[i].in[use] && !write_field(item, &fields[i], store))
                        return false;
        return true;
}

bool store_list_write(cJSON *object, const char *name, const struct store_list *list, enum store_list_use use)
{
        cJSON *array;

        if (list->count == 0)
                return true;
        array = cJSON_AddArrayToObject(object, name);
        for (unsigned i = 0; array && i < list->count; i++)
                if (!write_store(array, &list->items[i], use))
                        return false;
        return array;
}

/* ---- reading ---- */

static int read_number(const cJSON *item, double max, uint32_t *ret)
{
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= max)
                || trunc(item->valuedouble) != item->valuedouble)
                return -EBADMSG;
        *ret = (uint32_t)item->valuedouble;
        return 0;
}

static int read_token(const cJSON *item, char ret[static BACKING_TOKEN_SIZE])
{
        const char *text = cJSON_GetStringValue(item);
        size_t length = text ? strlen(text) : 0;

        if (!text || length >= BACKING_TOKEN_SIZE)
                return -EBADMSG;
        memcpy(ret, text, length + 1);
        return 0;
}

static int read_value(const cJSON *item, const struct field *field, struct listed_store *store)
{
        void *value = (char *)store + field->offset;
        uint32_t number;
        int r;

        switch (field->kind) {
        case FIELD_BOOL:
                *(bool *)value = cJSON_IsTrue(item);
                return cJSON_IsBool(item) ? 0 : -EBADMSG;
        case FIELD_BASIS:
                r = read_number(item, field->max, &number);
                if (r >= 0)
                        *(enum backing_basis *)value = (enum backing_basis)number;
                return r;
        case FIELD_U32:
                return read_number(item, field->max, value);
        case FIELD_U64:
                return json_read_u64(item, value);
        case FIELD_TOKEN:
                return read_token(item, value);
        }
        return -EBADMSG;
}

static int read_store(const cJSON *object, enum store_list_use use, struct listed_store *ret)
{
        int r = cJSON_IsObject(object) ? 0 : -EBADMSG;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(fields); i++)
                if (fields[i].in[use])
                        r = read_value(
                                cJSON_GetObjectItemCaseSensitive(object, fields[i].name), &fields[i], ret);
        return r;
}

int store_list_read(const cJSON *array, enum store_list_use use, struct store_list *ret)
{
        int size = cJSON_IsArray(array) ? cJSON_GetArraySize(array) : 0, r = 0;
        const cJSON *item;

        if (size < 1 || size > STORE_LIST_MAX)
                return -EBADMSG;
        ret->items = calloc((size_t)size, sizeof(*ret->items));
        if (!ret->items)
                return -ENOMEM;
        cJSON_ArrayForEach (item, array)
                if (r >= 0)
                        r = read_store(item, use, &ret->items[ret->count++]);
        return r;
}

unsigned store_list_fds(const struct store_list *list)
{
        unsigned count = 0;

        for (unsigned i = 0; i < list->count; i++)
                count += list->items[i].has_fd;
        return count;
}

void store_list_clear(struct store_list *list)
{
        free(list->items);
        *list = (struct store_list){};
}
