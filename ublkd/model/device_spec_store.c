/* SPDX-License-Identifier: MIT */
/* The backing stores of a device spec. */
#include "ublkd/model/device_spec_store.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

const char *device_spec_path(const struct device_spec *spec)
{
        int store = spec ? target_tree_store(spec->tree) : -1;

        return store < 0 ? NULL : target_node_path(&spec->tree->nodes[store]);
}

void device_spec_path_pointer(const struct device_spec *spec, char ret[static TARGET_POINTER_SIZE + 8])
{
        int store = target_tree_store(spec->tree);

        target_tree_pointer(spec->tree, store < 0 ? 0 : (unsigned)store, ret);
        strcat(ret, "/path");
}

unsigned device_spec_stores(const struct device_spec *spec)
{
        unsigned numbers[TARGET_STORES_MAX];

        return target_tree_stores(spec->tree, numbers);
}

const char *device_spec_store_path(const struct device_spec *spec, unsigned number)
{
        unsigned numbers[TARGET_STORES_MAX];

        return number < target_tree_stores(spec->tree, numbers)
                       ? target_node_path(&spec->tree->nodes[numbers[number]])
                       : NULL;
}

uint64_t device_spec_store_begin(const struct device_spec *spec, unsigned number)
{
        unsigned numbers[TARGET_STORES_MAX];

        return number < target_tree_stores(spec->tree, numbers)
                       ? target_tree_store_begin(spec->tree, numbers[number])
                       : 0;
}

void device_spec_store_pointer(
        const struct device_spec *spec, unsigned number, char ret[static TARGET_POINTER_SIZE])
{
        unsigned numbers[TARGET_STORES_MAX];

        target_tree_pointer(
                spec->tree, number < target_tree_stores(spec->tree, numbers) ? numbers[number] : 0, ret);
}

bool device_spec_names_store(const struct device_spec *spec, const char *path)
{
        unsigned numbers[TARGET_STORES_MAX], count = target_tree_stores(spec->tree, numbers);

        for (unsigned i = 0; i < count; i++) {
                const char *other = target_node_path(&spec->tree->nodes[numbers[i]]);

                if (other && strcmp(other, path) == 0)
                        return true;
        }
        return false;
}

bool device_spec_has_list(const struct device_spec *spec)
{
        return target_tree_has_list(spec->tree);
}

int device_spec_set_path(struct device_spec **spec, const char *path, struct problem_list *problems)
{
        struct device_spec *changed;
        cJSON *document = cJSON_Duplicate((*spec)->document, true);
        cJSON *target =
                (cJSON *)(uintptr_t)target_store_object(cJSON_GetObjectItemCaseSensitive(document, "target"));
        int r = -ENOMEM;

        cJSON_DeleteItemFromObjectCaseSensitive(target, "path");
        if (target && cJSON_AddStringToObject(target, "path", path))
                r = device_spec_parse(document, NULL, &changed, problems);
        cJSON_Delete(document);
        if (r < 0)
                return r;
        device_spec_free(*spec);
        *spec = changed;
        return 0;
}
