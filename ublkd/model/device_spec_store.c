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

/* Return the number of the node of a store in the tree; -1: there is no such store. */
static int node_of(const struct device_spec *spec, unsigned number)
{
        unsigned numbers[TARGET_STORES_MAX];

        return number < target_tree_stores(spec->tree, numbers) ? (int)numbers[number] : -1;
}

const char *device_spec_store_path(const struct device_spec *spec, unsigned number)
{
        int node = node_of(spec, number);

        return node < 0 ? NULL : target_node_path(&spec->tree->nodes[node]);
}

uint64_t device_spec_store_begin(const struct device_spec *spec, unsigned number)
{
        int node = node_of(spec, number);

        return node < 0 ? 0 : target_tree_store_begin(spec->tree, (unsigned)node);
}

void device_spec_store_pointer(
        const struct device_spec *spec, unsigned number, char ret[static TARGET_POINTER_SIZE])
{
        int node = node_of(spec, number);

        target_tree_pointer(spec->tree, node < 0 ? 0 : (unsigned)node, ret);
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
