/* SPDX-License-Identifier: MIT */
/* What is wrong with devices that serve their disks all the same, as problems of GET /host. */
#include "api/resources/host.h"

#include <stdio.h>

enum { SHOWN_MAX = 32 };

static bool add(cJSON *problems, const char *title, const char *detail)
{
        cJSON *item = cJSON_CreateObject();

        if (!item || !cJSON_AddItemToArray(problems, item)) {
                cJSON_Delete(item);
                return false;
        }
        return cJSON_AddStringToObject(item, "title", title)
               && cJSON_AddStringToObject(item, "detail", detail);
}

static bool add_condition(
        cJSON *problems, const struct device_record *record, const struct device_condition *condition)
{
        _cleanup_free_ char *detail = NULL;

        if (asprintf(&detail, "Device \"%s\": %s", record->name, condition->message) < 0) {
                detail = NULL;
                return false;
        }
        return add(problems, reason_to_string(condition->reason), detail);
}

static bool add_rest(cJSON *problems, size_t count)
{
        char detail[96];

        snprintf(detail, sizeof(detail),
                "%zu more are not shown; 'ublkctl describe' shows those of a device.", count);
        return add(problems, "MoreConditions", detail);
}

bool host_add_devices(cJSON *problems, const struct device_store *store)
{
        size_t count = 0;

        DEVICE_STORE_FOREACH (record, store)
                for (size_t i = 0; i < _CONDITION_MAX; i++) {
                        const struct device_condition *condition = &record->status.conditions.of[i];

                        if (condition->status == CONDITION_FALSE && ++count <= SHOWN_MAX
                                && !add_condition(problems, record, condition))
                                return false;
                }
        return count <= SHOWN_MAX || add_rest(problems, count - SHOWN_MAX);
}
