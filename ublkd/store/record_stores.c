/* SPDX-License-Identifier: MIT */
/* Which backing stores a disk with a list of them was created on. */
#include "ublkd/store/record_stores.h"

#include "ublkd/values/json_print.h"
#include "ublkd/values/json_util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct record_stores *record_stores_free(struct record_stores *stores)
{
        for (unsigned i = 0; stores && i < stores->count; i++)
                free(stores->items[i].path);
        if (stores)
                free(stores->unreadable);
        free(stores);
        return NULL;
}

static unsigned count_of(const struct record_stores *stores)
{
        return stores ? stores->count : 0;
}

static const struct record_store *find_place(const struct record_stores *stores, unsigned number)
{
        for (unsigned i = 0; i < count_of(stores); i++)
                if (stores->items[i].number == number)
                        return &stores->items[i];
        return NULL;
}

const struct record_store *record_stores_at(
        const struct record_stores *stores, unsigned number, const char *path)
{
        const struct record_store *store = find_place(stores, number);

        return store && strcmp(store->path, path) == 0 ? store : NULL;
}

const struct record_store *record_stores_find(const struct record_stores *stores, const char *path)
{
        for (unsigned i = 0; i < count_of(stores); i++)
                if (strcmp(stores->items[i].path, path) == 0)
                        return &stores->items[i];
        return NULL;
}

const struct record_store *record_stores_elsewhere(const struct record_stores *stores, unsigned number,
        const char *path, const struct backing_identity *identity)
{
        for (unsigned i = 0; i < count_of(stores); i++) {
                const struct record_store *store = &stores->items[i];

                if (store->number != number && strcmp(store->path, path) != 0
                        && strcmp(backing_identity_text(&store->identity), backing_identity_text(identity))
                                   == 0)
                        return store;
        }
        return NULL;
}

bool record_stores_are_unreadable(const struct record_stores *stores)
{
        return stores && stores->unreadable;
}

static const char *unreadable_of(const struct record_stores *stores)
{
        return record_stores_are_unreadable(stores) ? stores->unreadable : "";
}

bool record_stores_equal(const struct record_stores *one, const struct record_stores *other)
{
        if (count_of(one) != count_of(other) || strcmp(unreadable_of(one), unreadable_of(other)) != 0)
                return false;
        for (unsigned i = 0; i < count_of(one); i++) {
                const struct record_store *store = &one->items[i],
                                          *twin = record_stores_at(other, store->number, store->path);

                if (!twin || !backing_identity_equal(&store->identity, &twin->identity)
                        || strcmp(store->boot, twin->boot) != 0)
                        return false;
        }
        return true;
}

static struct record_stores *make_room(unsigned count)
{
        return calloc(1, sizeof(struct record_stores) + count * sizeof(struct record_store));
}

static int add(struct record_stores *to, unsigned number, const char *path,
        const struct backing_identity *identity, const char *boot)
{
        struct record_store *store = &to->items[to->count];

        store->path = strdup(path);
        if (!store->path)
                return -ENOMEM;
        store->number = number;
        store->identity = *identity;
        snprintf(store->boot, sizeof(store->boot), "%s", boot);
        to->count++;
        return 0;
}

static int add_copy(
        struct record_stores *to, unsigned number, const char *path, const struct record_store *from)
{
        return add(to, number, path, &from->identity, from->boot);
}

int record_stores_copy(const struct record_stores *stores, struct record_stores **ret)
{
        _cleanup_record_stores_ struct record_stores *made = make_room(count_of(stores));

        if (!made)
                return -ENOMEM;
        if (record_stores_are_unreadable(stores)) {
                made->unreadable = strdup(stores->unreadable);
                if (!made->unreadable)
                        return -ENOMEM;
        }
        for (unsigned i = 0; i < count_of(stores); i++)
                if (add_copy(made, stores->items[i].number, stores->items[i].path, &stores->items[i]) < 0)
                        return -ENOMEM;
        *ret = made->count > 0 || made->unreadable ? TAKE_PTR(made) : NULL;
        return 0;
}

static bool was_named(const struct record_stores *stores, const struct device_spec *before, const char *path)
{
        return record_stores_find(stores, path) || (before && device_spec_names_store(before, path));
}

int record_stores_carry(const struct record_stores *stores, const struct device_spec *before,
        const struct device_spec *spec, struct record_stores **ret)
{
        unsigned count = device_spec_stores(spec);
        _cleanup_record_stores_ struct record_stores *made = make_room(count);
        const struct record_store *kept[TARGET_STORES_MAX] = {};
        bool same_places =
                before && device_spec_stores(before) == count; /* else a place is no longer what it was */
        int r = made ? 0 : -ENOMEM;

        for (unsigned i = 0; r >= 0 && i < count; i++) {
                const char *path = device_spec_store_path(spec, i);

                if (same_places && path && was_named(stores, before, path))
                        kept[i] = find_place(stores, i);
                if (kept[i])
                        r = add_copy(made, i, path, kept[i]);
        }
        for (unsigned i = 0; r >= 0 && i < count; i++) {
                const char *path = device_spec_store_path(spec, i);
                const struct record_store *store = path ? record_stores_find(stores, path) : NULL;
                bool is_kept = kept[i] || (store && store->number < count && kept[store->number]);

                if (store && !is_kept)
                        r = add_copy(made, i, path, store);
        }
        if (r < 0)
                return r;
        *ret = made->count > 0 ? TAKE_PTR(made) : NULL;
        return 0;
}

int record_stores_with(const struct record_stores *stores, unsigned number, const char *path,
        const struct backing_identity *identity, const char *boot, struct record_stores **ret)
{
        _cleanup_record_stores_ struct record_stores *made = make_room(count_of(stores) + 1);
        int r = made ? add(made, number, path, identity, boot) : -ENOMEM;

        for (unsigned i = 0; r >= 0 && i < count_of(stores); i++) {
                const struct record_store *store = &stores->items[i];

                if (store->number != number)
                        r = add_copy(made, store->number, store->path, store);
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(made);
        return 0;
}

/* ---- as text ---- */

static bool print_store(cJSON *array, const struct record_store *store)
{
        cJSON *object = cJSON_CreateObject();

        if (!cJSON_AddItemToArray(array, object)) {
                cJSON_Delete(object);
                return false;
        }
        return cJSON_AddNumberToObject(object, "number", store->number)
               && cJSON_AddStringToObject(object, "path", store->path)
               && cJSON_AddNumberToObject(object, "basis", store->identity.basis)
               && cJSON_AddBoolToObject(object, "isDisk", store->identity.is_disk)
               && cJSON_AddStringToObject(object, "now", store->identity.boot)
               && cJSON_AddStringToObject(object, "lasting", store->identity.lasting)
               && cJSON_AddStringToObject(object, "boot", store->boot);
}

int record_stores_print(const struct record_stores *stores, char **ret)
{
        _cleanup_json_ cJSON *array = cJSON_CreateArray();
        char *text;

        for (unsigned i = 0; array && i < count_of(stores); i++)
                if (!print_store(array, &stores->items[i]))
                        return -ENOMEM;
        text = !array ? NULL : count_of(stores) == 0 ? strdup(unreadable_of(stores)) : json_print(array);
        if (!text)
                return -ENOMEM;
        *ret = text;
        return 0;
}

/* Return the string, or NULL if it does not fit into `size` bytes. */
static const char *read_text(const cJSON *object, const char *name, size_t size)
{
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

        return text && strlen(text) < size ? text : NULL;
}

static int parse_store(const cJSON *object, struct record_stores *to)
{
        const char *path = read_text(object, "path", SIZE_MAX),
                   *now = read_text(object, "now", BACKING_TOKEN_SIZE),
                   *lasting = read_text(object, "lasting", BACKING_TOKEN_SIZE),
                   *boot = read_text(object, "boot", RECORD_BOOT_SIZE);
        const cJSON *number = cJSON_GetObjectItemCaseSensitive(object, "number"),
                    *basis = cJSON_GetObjectItemCaseSensitive(object, "basis"),
                    *is_disk = cJSON_GetObjectItemCaseSensitive(object, "isDisk");
        struct backing_identity identity = {.is_disk = cJSON_IsTrue(is_disk)};

        if (!path || !now || !lasting || !boot || !cJSON_IsBool(is_disk) || !cJSON_IsNumber(basis)
                || basis->valueint < 0 || basis->valueint >= _BACKING_BASIS_MAX || !cJSON_IsNumber(number)
                || number->valueint < 0 || number->valueint >= TARGET_STORES_MAX
                || find_place(to, (unsigned)number->valueint))
                return -EBADMSG;
        identity.basis = (enum backing_basis)basis->valueint;
        strcpy(identity.boot, now);
        strcpy(identity.lasting, lasting);
        return backing_identity_is_empty(&identity)
                       ? -EBADMSG
                       : add(to, (unsigned)number->valueint, path, &identity, boot);
}

static int parse_all(const char *text, struct record_stores **ret)
{
        _cleanup_json_ cJSON *array = *text ? cJSON_Parse(text) : cJSON_CreateArray();
        int size = cJSON_IsArray(array) ? cJSON_GetArraySize(array) : -1, r = 0;
        _cleanup_record_stores_ struct record_stores *made = NULL;
        const cJSON *item;

        if (size < 0 || size > TARGET_STORES_MAX)
                return -EBADMSG;
        made = make_room((unsigned)size);
        if (!made)
                return -ENOMEM;
        cJSON_ArrayForEach (item, array)
                if (r >= 0)
                        r = parse_store(item, made);
        if (r < 0)
                return r;
        *ret = made->count > 0 ? TAKE_PTR(made) : NULL;
        return 0;
}

int record_stores_parse(const char *text, struct record_stores **ret)
{
        _cleanup_record_stores_ struct record_stores *made = NULL;
        int r = parse_all(text, ret);

        if (r != -EBADMSG)
                return r;
        made = make_room(0);
        if (!made)
                return -ENOMEM;
        made->unreadable = strdup(text);
        if (!made->unreadable)
                return -ENOMEM;
        *ret = TAKE_PTR(made);
        return 0;
}
