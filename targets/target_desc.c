/* SPDX-License-Identifier: MIT */
/* What the descriptor of a target is asked, and how what its actions found is shown. */
#include "targets/target_desc.h"
#include "ublkd/values/json_print.h"

#include <string.h>

int target_desc_verb(const struct target_desc *desc, const char *name)
{
        for (unsigned i = 0; i < desc->verb_count; i++)
                if (strcmp(desc->verbs[i].name, name) == 0)
                        return (int)i;
        return -1;
}

static bool add_range(cJSON *ranges, uint64_t offset, uint64_t length)
{
        cJSON *range = cJSON_CreateObject();

        if (!range || !cJSON_AddItemToArray(ranges, range)) {
                cJSON_Delete(range);
                return false;
        }
        return json_add_integer(range, "offset", offset) && json_add_integer(range, "length", length);
}

bool target_findings_show(const struct target_findings *findings, const char *name, cJSON *ret)
{
        cJSON *object = cJSON_AddObjectToObject(ret, name), *ranges;
        bool good = object && json_add_integer(object, "count", findings->found)
                    && json_add_integer(object, "bytes", findings->bytes);

        ranges = good ? cJSON_AddArrayToObject(object, "ranges") : NULL;
        for (unsigned i = 0; ranges && good && i < findings->range_count; i++)
                good = add_range(ranges, findings->ranges[i].offset, findings->ranges[i].length);
        return good && ranges;
}
