/* SPDX-License-Identifier: MIT */
/* The conditions of a device beside Ready: copies, comparison, and the JSON that the API shows. */
#include "ublkd/model/device_condition.h"

#include "ublkd/base/sentence.h"
#include "ublkd/values/json_time.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const type_names[] = {
        [CONDITION_PATH_LEADS_TO_STORE] = "PathLeadsToStore",
        [CONDITION_DURABLE] = "Durable",
        [CONDITION_BACKING_WHOLE] = "BackingWhole",
        [CONDITION_SPACE] = "Space",
        [CONDITION_ERROR_FREE] = "ErrorFree",
        [CONDITION_PROGRESS] = "Progress",
        [CONDITION_RESOURCES] = "Resources",
        [CONDITION_STABLE_PATH] = "StablePath",
        [CONDITION_SWAP_SAFE] = "SwapSafe",
        [CONDITION_PARTITIONS] = "Partitions",
        [CONDITION_SOURCE] = "Source",
        [CONDITION_NEEDS_RESTART] = "NeedsRestart",
};
static_assert(ARRAY_SIZE(type_names) == _CONDITION_MAX, "every condition has a name");

static const char *const status_names[] = {
        [CONDITION_ABSENT] = "",
        [CONDITION_TRUE] = "True",
        [CONDITION_FALSE] = "False",
        [CONDITION_UNKNOWN] = "Unknown",
};
static_assert(ARRAY_SIZE(status_names) == _CONDITION_STATUS_MAX, "every status has a name");

const char *condition_type_to_string(enum condition_type type)
{
        assert(type < _CONDITION_MAX);
        return type_names[type];
}

const char *condition_status_to_string(enum condition_status status)
{
        assert(status < _CONDITION_STATUS_MAX);
        return status_names[status];
}

int device_condition_set(struct device_condition *condition, enum condition_status status,
        enum condition_reason reason, const char *format, ...)
{
        va_list arguments;
        char *message;
        int n;

        va_start(arguments, format);
        n = vasprintf(&message, format, arguments);
        va_end(arguments);
        if (n < 0)
                return -ENOMEM;
        free(condition->message);
        *condition = (struct device_condition){.status = status, .reason = reason, .message = message};
        return 0;
}

int device_conditions_copy(const struct device_conditions *from, struct device_conditions *ret)
{
        struct device_conditions copy = *from;
        bool failed = false;

        for (size_t i = 0; i < _CONDITION_MAX; i++) {
                const char *message = from->of[i].message;

                copy.of[i].message = message ? strdup(message) : NULL;
                failed = failed || (message && !copy.of[i].message);
        }
        if (failed) {
                device_conditions_clear(&copy);
                return -ENOMEM;
        }
        *ret = copy;
        return 0;
}

bool device_conditions_equal(const struct device_conditions *one, const struct device_conditions *other)
{
        for (size_t i = 0; i < _CONDITION_MAX; i++) {
                const struct device_condition *left = &one->of[i], *right = &other->of[i];

                if (left->status != right->status || left->transition_at != right->transition_at
                        || left->observed_at != right->observed_at || left->reason != right->reason
                        || !sentence_equal(left->message, right->message))
                        return false;
        }
        return true;
}

void device_conditions_clear(struct device_conditions *conditions)
{
        for (size_t i = 0; i < _CONDITION_MAX; i++)
                free(conditions->of[i].message);
        *conditions = (struct device_conditions){};
}

void device_conditions_set_times(
        const struct device_conditions *from, struct device_conditions *to, uint64_t now)
{
        for (size_t i = 0; i < _CONDITION_MAX; i++) {
                const struct device_condition *before = &from->of[i];
                struct device_condition *after = &to->of[i];

                if (after->status == CONDITION_ABSENT || after->transition_at)
                        continue;
                after->transition_at = before->status == after->status && before->transition_at
                                               ? before->transition_at
                                               : now;
        }
}

static bool add_condition(
        cJSON *array, enum condition_type type, const struct device_condition *condition, enum reader reader)
{
        const char *message = tenant_text(reader, condition->reason, condition->message);
        cJSON *object = cJSON_CreateObject();

        if (!object || !cJSON_AddItemToArray(array, object)) {
                cJSON_Delete(object);
                return false;
        }
        return cJSON_AddStringToObject(object, "type", condition_type_to_string(type))
               && cJSON_AddStringToObject(object, "status", condition_status_to_string(condition->status))
               && cJSON_AddStringToObject(object, "reason", reason_to_string(condition->reason))
               && cJSON_AddStringToObject(object, "message", message)
               && json_add_time(object, "lastTransitionTime", condition->transition_at)
               && (condition->observed_at == 0
                       || json_add_time(object, "observedAt", condition->observed_at));
}

bool device_conditions_add(const struct device_conditions *conditions, cJSON *array, enum reader reader)
{
        for (size_t i = 0; i < _CONDITION_MAX; i++)
                if (conditions->of[i].status != CONDITION_ABSENT
                        && !add_condition(array, (enum condition_type)i, &conditions->of[i], reader))
                        return false;
        return true;
}
