/* SPDX-License-Identifier: MIT */
/* Read answers: members by a dotted path. */
#include "ublkctl/text/json_path.h"

#include <stdio.h>
#include <string.h>

enum { TARGET_LEVELS = 8 };

const cJSON *json_find(const cJSON *object, const char *path)
{
        char name[128];

        while (object && *path) {
                size_t length = strcspn(path, ".");

                if (length >= sizeof(name))
                        return NULL;
                memcpy(name, path, length);
                name[length] = '\0';
                object = cJSON_GetObjectItemCaseSensitive(object, name);
                path += length + (path[length] == '.');
        }
        return object;
}

const char *json_text(const cJSON *object, const char *path)
{
        const cJSON *item = json_find(object, path);

        return cJSON_IsString(item) ? item->valuestring : NULL;
}

const char *json_store_path(const cJSON *device)
{
        const cJSON *target = json_find(device, "spec.target");

        for (int level = 0; level < TARGET_LEVELS && json_find(target, "child"); level++)
                target = json_find(target, "child");
        return json_text(target, "path");
}

const cJSON *json_condition(const cJSON *device, const char *type)
{
        const cJSON *condition;

        cJSON_ArrayForEach (condition, json_find(device, "status.conditions")) {
                const char *other = json_text(condition, "type");

                if (other && strcmp(other, type) == 0)
                        return condition;
        }
        return NULL;
}

double json_number(const cJSON *object, const char *path, double fallback)
{
        const cJSON *item = json_find(object, path);

        return cJSON_IsNumber(item) ? item->valuedouble : fallback;
}

bool json_true(const cJSON *object, const char *path)
{
        return cJSON_IsTrue(json_find(object, path));
}
