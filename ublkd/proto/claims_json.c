/* SPDX-License-Identifier: MIT */
/* The claims of a disk in PARAMS. */
#include "ublkd/proto/claims_json.h"

#include "ublkd/proto/json_u64.h"

#include <string.h>

/* The four fields of one claim. */
struct names {
        const char *key, *start, *end, *writes;
};

static const struct names first_names = {"claimKey", "claimStart", "claimEnd", "claimWrites"};
static const struct names item_names = {"key", "start", "end", "writes"};

static bool add_claim(cJSON *object, const struct names *names, const struct backing_claim *claim)
{
        return (!claim->key || cJSON_AddStringToObject(object, names->key, claim->key))
               && json_add_u64(object, names->start, claim->start)
               && json_add_u64(object, names->end, claim->end)
               && cJSON_AddBoolToObject(object, names->writes, claim->writes);
}

static bool add_item(cJSON *array, const struct backing_claim *claim)
{
        cJSON *item = cJSON_CreateObject();

        if (!cJSON_AddItemToArray(array, item)) {
                cJSON_Delete(item);
                return false;
        }
        return add_claim(item, &item_names, claim) && cJSON_AddBoolToObject(item, "mapped", claim->mapped);
}

bool claims_json_add(cJSON *object, const struct backing_claims *claims)
{
        struct backing_claim first = claims->count > 0 ? claims->items[0] : (struct backing_claim){};
        cJSON *array = cJSON_AddArrayToObject(object, "claims");

        for (size_t i = 0; i < claims->count; i++)
                if (!array || !add_item(array, &claims->items[i]))
                        return false;
        return array && add_claim(object, &first_names, &first);
}

static int read_bool(const cJSON *item, bool *ret)
{
        *ret = cJSON_IsTrue(item);
        return cJSON_IsBool(item) ? 0 : -EBADMSG;
}

static int read_claim(const cJSON *object, const struct names *names, struct backing_claims *ret)
{
        const cJSON *key = cJSON_GetObjectItemCaseSensitive(object, names->key);
        const cJSON *mapped = cJSON_GetObjectItemCaseSensitive(object, "mapped");
        struct backing_claim claim = {.key = cJSON_GetStringValue(key)};
        int r = json_read_u64(cJSON_GetObjectItemCaseSensitive(object, names->start), &claim.start);

        if (r >= 0)
                r = json_read_u64(cJSON_GetObjectItemCaseSensitive(object, names->end), &claim.end);
        if (r >= 0)
                r = read_bool(cJSON_GetObjectItemCaseSensitive(object, names->writes), &claim.writes);
        if (r >= 0 && mapped)
                r = read_bool(mapped, &claim.mapped);
        if (r < 0 || !key)
                return r;
        r = backing_claims_add(ret, &claim);
        return r == -ENOMEM ? r : r < 0 ? -EBADMSG : 0;
}

static int read_array(const cJSON *array, struct backing_claims *ret)
{
        const cJSON *item;
        int r = cJSON_IsArray(array) ? 0 : -EBADMSG;

        cJSON_ArrayForEach (item, array) {
                if (r >= 0)
                        r = cJSON_GetObjectItemCaseSensitive(item, item_names.key)
                                    ? read_claim(item, &item_names, ret)
                                    : -EBADMSG;
        }
        return r;
}

/* Both forms must be about the same store. */
static bool agree(const struct backing_claims *first, const struct backing_claims *all)
{
        if (first->count == 0 || all->count == 0)
                return first->count == all->count;
        return strcmp(first->items[0].key, all->items[0].key) == 0;
}

int claims_json_read(const cJSON *object, struct backing_claims *ret)
{
        const cJSON *array = cJSON_GetObjectItemCaseSensitive(object, "claims");
        _cleanup_claims_ struct backing_claims first = {};
        int r = read_claim(object, &first_names, &first);

        if (r >= 0)
                r = array ? read_array(array, ret) : backing_claims_append(ret, &first);
        if (r >= 0 && array && !agree(&first, ret))
                return -EBADMSG;
        return r;
}
