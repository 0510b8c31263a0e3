/* SPDX-License-Identifier: MIT */
/* Selectors of devices by their labels. */
#include "ublkctl/verbs/show/selector.h"

#include "ublkctl/text/json_path.h"

#include <string.h>

bool selector_is_equality(const char *selector)
{
        const char *equals = strchr(selector, '=');

        return !equals || equals == selector || equals[-1] != '!';
}

static bool is_excluded(const char *selector, const cJSON *labels)
{
        const char *equals = strchr(selector, '=');
        size_t length = (size_t)(equals - selector) - 1; /* without the '!' */
        const cJSON *label;

        cJSON_ArrayForEach (label, labels)
                if (strlen(label->string) == length && strncmp(label->string, selector, length) == 0)
                        return cJSON_IsString(label) && strcmp(label->valuestring, equals + 1) == 0;
        return false;
}

bool selectors_match(const struct text_list *selectors, const cJSON *device)
{
        for (size_t i = 0; i < selectors->count; i++)
                if (!selector_is_equality(selectors->items[i])
                        && is_excluded(selectors->items[i], json_find(device, "spec.labels")))
                        return false;
        return true;
}
