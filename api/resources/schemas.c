/* SPDX-License-Identifier: MIT */
/* GET /schemas, GET /schemas/…: the schemas that this build checks specs against. GET /openapi.json: its
 * API. */
#include "api/resources/handlers.h"
#include "schemas/schema_texts.h"

#include "api/http/respond.h"

#include <stdio.h>
#include <string.h>

void handle_openapi(struct request *request)
{
        reply_text(request, MHD_HTTP_OK, "application/json", openapi_text);
}

void handle_schema(struct request *request)
{
        for (const struct schema_text *schema = schema_texts; schema->name; schema++)
                if (strcmp(schema->name, request->name) == 0) {
                        reply_text(request, MHD_HTTP_OK, "application/schema+json", schema->text);
                        return;
                }
        reply_problem(request, PROBLEM_NO_SUCH_RESOURCE, "No such schema; GET /schemas lists all.");
}

static bool add_schema(cJSON *items, const char *name)
{
        cJSON *item = cJSON_CreateObject();
        char path[128];

        snprintf(path, sizeof(path), "/schemas/%s", name);
        if (!item || !cJSON_AddItemToArray(items, item)) {
                cJSON_Delete(item);
                return false;
        }
        return cJSON_AddStringToObject(item, "name", name) && cJSON_AddStringToObject(item, "path", path);
}

void handle_schema_list(struct request *request)
{
        cJSON *object = cJSON_CreateObject(),
              *items = object ? cJSON_AddArrayToObject(object, "items") : NULL;
        bool good = items != NULL;

        for (const struct schema_text *schema = schema_texts; good && schema->name; schema++)
                good = add_schema(items, schema->name);
        if (good) {
                reply_json(request, MHD_HTTP_OK, object);
                return;
        }
        cJSON_Delete(object);
        reply_error(request, -ENOMEM, "Cannot list the schemas");
}
