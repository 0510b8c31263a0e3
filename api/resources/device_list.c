/* SPDX-License-Identifier: MIT */
/* GET /devices: pages in the order of names. The token for the next page is the last name of this page. So a
 * device that is created or removed between two pages neither repeats nor hides another device. */
#include "api/resources/handlers.h"
#include "api/http/respond.h"
#include "api/http/sharing.h"
#include "api/http/server.h"
#include "api/http/view.h"

#include "ublkd/values/json_print.h"

#include <string.h>

/* Return whether the device has the labels that the client asked for. */
static bool matches(const struct device_record *record, const struct query *query)
{
        const cJSON *labels = record->spec ? record->spec->options.labels : NULL;

        for (size_t i = 0; i < query->label_count; i++) {
                const cJSON *label = cJSON_GetObjectItemCaseSensitive(labels, query->labels[i].key);

                if (!cJSON_IsString(label) || strcmp(label->valuestring, query->labels[i].value) != 0)
                        return false;
        }
        return true;
}

/* Return the first match, from `record` on, which the client sees; NULL: none. The store owns it. */
static const struct device_record *match_from(
        const struct device_record *record, const struct request *request)
{
        while (record && !matches(record, &request->query))
                record = view_after(request, record);
        return record;
}

static bool add_item(cJSON *items, const struct device_record *record, enum reader reader)
{
        cJSON *item = device_record_to_json(record, reader);

        if (item && cJSON_AddItemToArray(items, item))
                return true;
        cJSON_Delete(item);
        return false;
}

static bool add_page(cJSON *object, const struct request *request)
{
        const struct query *query = &request->query;
        cJSON *items = cJSON_AddArrayToObject(object, "items");
        const struct device_record *record = match_from(view_next(request, query->continue_after), request),
                                   *next;

        for (unsigned count = 0; items && record; record = next) {
                next = match_from(view_after(request, record), request);
                if (!add_item(items, record, view_reader(request)))
                        return false;
                if (++count == query->limit && next)
                        return cJSON_AddStringToObject(object, "continue", record->name) != NULL;
        }
        return items != NULL;
}

void handle_device_list(struct request *request)
{
        const struct device_store *store = request->api->config.store;
        cJSON *object;

        if (sharing_reply(request))
                return;
        object = cJSON_CreateObject();
        if (object && add_page(object, request)
                && json_add_integer(object, "revision", device_store_revision(store))) {
                reply_json(request, MHD_HTTP_OK, object);
                sharing_keep(request);
                return;
        }
        cJSON_Delete(object);
        reply_error(request, -ENOMEM, "Cannot make the list");
}
