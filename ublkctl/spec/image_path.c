/* SPDX-License-Identifier: MIT */
/* The path of an image. */
#include "ublkctl/spec/image_path.h"

#include "ublkctl/text/json_path.h"

#include <string.h>

cJSON *image_path_carry(const cJSON *spec, const cJSON *stored)
{
        cJSON *copy = cJSON_Duplicate(spec, true);
        const char *pool = json_text(spec, "target.pool"), *before = json_text(stored, "target.pool"),
                   *path = json_text(stored, "target.path");
        cJSON *target = cJSON_GetObjectItemCaseSensitive(copy, "target");

        if (!copy || !pool || !before || !path || strcmp(pool, before) != 0 || json_find(spec, "target.path")
                || cJSON_AddStringToObject(target, "path", path))
                return copy;
        cJSON_Delete(copy);
        return NULL;
}
