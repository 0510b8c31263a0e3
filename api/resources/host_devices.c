/* SPDX-License-Identifier: MIT */
/* Problems of devices that have their disks nevertheless, for GET /host. */
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

static bool add_sentence(
        cJSON *problems, const struct device_record *record, const char *title, const char *sentence)
{
        _cleanup_free_ char *detail = NULL;

        if (asprintf(&detail, "Device \"%s\": %s", record->name, sentence) < 0) {
                detail = NULL;
                return false;
        }
        return add(problems, title, detail);
}

/* A disk that exists and has no worker here: its openers wait, or get errors, unless a worker that this ublkd could
 * not adopt still serves it. */
static bool add_unserved(cJSON *problems, const struct device_record *record)
{
        _cleanup_free_ char *sentence = NULL;

        if (asprintf(&sentence,
                    "/dev/ublkb%d exists, and ublkd has no worker for it: unless an earlier worker still "
                    "serves the disk, its I/O waits, or fails as recovery.onCrash says. %s",
                    record->status.number, record->status.message)
                < 0) {
                sentence = NULL;
                return false;
        }
        return add_sentence(problems, record, device_status_reason(&record->status), sentence);
}

static bool is_unserved(const struct device_record *record)
{
        const struct device_status *status = &record->status;
        bool failed = status->phase == PHASE_BACKOFF || status->phase == PHASE_FAILED;

        return failed && status->disk && record->age == RECORD_CURRENT && status->message;
}

static bool add_rest(cJSON *problems, size_t count)
{
        char detail[96];

        snprintf(detail, sizeof(detail),
                "%zu more are not shown; 'ublkctl describe' shows those of one device.", count);
        return add(problems, "MoreConditions", detail);
}

bool host_add_devices(cJSON *problems, const struct device_store *store)
{
        size_t count = 0;

        DEVICE_STORE_FOREACH (record, store) {
                if (is_unserved(record) && ++count <= SHOWN_MAX && !add_unserved(problems, record))
                        return false;
                for (size_t i = 0; i < _CONDITION_MAX; i++) {
                        const struct device_condition *condition = &record->status.conditions.of[i];

                        if (condition->status == CONDITION_FALSE && ++count <= SHOWN_MAX
                                && !add_sentence(problems, record, reason_to_string(condition->reason),
                                        condition->message))
                                return false;
                }
        }
        return count <= SHOWN_MAX || add_rest(problems, count - SHOWN_MAX);
}
