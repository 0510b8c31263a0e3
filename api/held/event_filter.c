/* SPDX-License-Identifier: MIT */
/* Select the events that a request asks for. */
#include "api/held/event_filter.h"

#include <string.h>

bool event_filter_matches(const struct query *query, const struct device_event *event)
{
        cJSON *labels;
        bool match = true;

        if (query->device && strcmp(query->device, event->device) != 0)
                return false;
        if (query->label_count == 0)
                return true;
        labels = event->labels ? cJSON_Parse(event->labels) : NULL;
        for (size_t i = 0; match && i < query->label_count; i++) {
                const char *value =
                        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(labels, query->labels[i].key));

                match = value && strcmp(value, query->labels[i].value) == 0;
        }
        cJSON_Delete(labels);
        return match;
}
