/* SPDX-License-Identifier: MIT */
/* The newest requests of a disk that failed, as the status shows them. */
#include "ublkd/model/io_errors.h"

#include "ublkd/values/json_print.h"
#include "ublkd/values/json_time.h"

#include <string.h>

bool io_errors_equal(const struct io_errors *one, const struct io_errors *other)
{
        for (size_t i = 0; i < _STATS_OP_MAX; i++) {
                const struct error_report *left = &one->of[i], *right = &other->of[i];

                if (left->count != right->count || left->at != right->at || left->offset != right->offset
                        || left->length != right->length || left->error != right->error)
                        return false;
        }
        return true;
}

const char *io_error_name(int error)
{
        const char *name = strerrorname_np(error);

        return name ? name : "other";
}

bool io_error_has_place(enum stats_op op)
{
        return op != STATS_FLUSH && op != STATS_OTHER;
}

static bool add_place(cJSON *error, const struct error_report *report, enum stats_op op)
{
        if (!io_error_has_place(op))
                return cJSON_AddNullToObject(error, "offset") && cJSON_AddNullToObject(error, "length");
        return json_add_integer(error, "offset", report->offset)
               && json_add_integer(error, "length", report->length);
}

static bool add_error(cJSON *array, const struct error_report *report, enum stats_op op)
{
        cJSON *error = cJSON_CreateObject();

        if (!error || !cJSON_AddItemToArray(array, error)) {
                cJSON_Delete(error);
                return false;
        }
        return cJSON_AddStringToObject(error, "op", stats_op_to_string(op))
               && json_add_integer(error, "count", report->count)
               && cJSON_AddStringToObject(error, "errno", io_error_name(report->error))
               && json_add_time(error, "at", report->at) && add_place(error, report, op);
}

bool io_errors_add(const struct io_errors *errors, cJSON *object, const char *name)
{
        cJSON *array = cJSON_AddArrayToObject(object, name);

        for (size_t i = 0; array && i < _STATS_OP_MAX; i++)
                if (errors->of[i].count > 0 && !add_error(array, &errors->of[i], (enum stats_op)i))
                        return false;
        return array != NULL;
}
