/* SPDX-License-Identifier: MIT */
/* GET /targets: the targets of this build. */
#include "targets/known/known_targets.h"
#include "api/resources/handlers.h"

#include "ublkd/kernel/data_path.h"

#include "api/http/respond.h"

#include <stdio.h>

/* Features that clients may rely on; the other flags concern the worker only. */
static const struct {
        enum target_flag flag;
        const char *name;
} features[] = {
        {TARGET_REISSUE_SAFE, "reissue"  },
        {TARGET_NATIVE_FUA,   "fua"      },
        {TARGET_ONE_QUEUE,    "one-queue"},
};

static bool add_features(cJSON *item, const struct target_desc *desc)
{
        cJSON *array = cJSON_AddArrayToObject(item, "features");

        for (size_t i = 0; array && i < ARRAY_SIZE(features); i++) {
                cJSON *name;

                if (!(desc->flags & features[i].flag))
                        continue;
                name = cJSON_CreateString(features[i].name);
                if (!cJSON_AddItemToArray(array, name)) {
                        cJSON_Delete(name);
                        return false;
                }
        }
        return array != NULL;
}

static bool add_actions(cJSON *item, const struct target_desc *desc)
{
        cJSON *array = cJSON_AddArrayToObject(item, "actions");

        for (unsigned i = 0; array && i < desc->verb_count; i++) {
                cJSON *action = cJSON_CreateObject();

                if (!action || !cJSON_AddItemToArray(array, action)) {
                        cJSON_Delete(action);
                        return false;
                }
                if (!cJSON_AddStringToObject(action, "name", desc->verbs[i].name)
                        || !cJSON_AddStringToObject(action, "summary", desc->verbs[i].summary))
                        return false;
        }
        return array;
}

static bool add_path(cJSON *array, enum data_path path)
{
        cJSON *name = cJSON_CreateString(data_path_to_string(path));

        if (cJSON_AddItemToArray(array, name))
                return true;
        cJSON_Delete(name);
        return false;
}

static bool add_paths(cJSON *item, const struct target_desc *desc)
{
        cJSON *array = cJSON_AddArrayToObject(item, "dataPaths");

        return array && add_path(array, DATA_PATH_COPY) && add_path(array, DATA_PATH_USER_COPY)
               && (!(desc->flags & TARGET_REGISTERED_BUFFERS) || add_path(array, DATA_PATH_ZERO_COPY));
}

static bool add_target(cJSON *items, const struct target_desc *desc)
{
        cJSON *item = cJSON_CreateObject();
        char schema[96];

        snprintf(schema, sizeof(schema), "/schemas/targets/%s", desc->name);
        if (!item || !cJSON_AddItemToArray(items, item)) {
                cJSON_Delete(item);
                return false;
        }
        return cJSON_AddStringToObject(item, "name", desc->name)
               && cJSON_AddStringToObject(item, "summary", desc->summary)
               && cJSON_AddBoolToObject(item, "sizeRequired", desc->size_required)
               && cJSON_AddBoolToObject(item, "forTests", desc->flags & TARGET_FOR_TESTS)
               && add_features(item, desc) && add_paths(item, desc) && add_actions(item, desc)
               && cJSON_AddStringToObject(item, "schema", schema);
}

void handle_targets(struct request *request)
{
        size_t count;
        const struct target_desc *const *all = known_targets_all(&count);
        cJSON *object = cJSON_CreateObject(),
              *items = object ? cJSON_AddArrayToObject(object, "items") : NULL;
        bool good = items != NULL;

        for (size_t i = 0; good && i < count; i++)
                good = add_target(items, all[i]);
        if (good) {
                reply_json(request, MHD_HTTP_OK, object);
                return;
        }
        cJSON_Delete(object);
        reply_error(request, -ENOMEM, "Cannot list the targets");
}
