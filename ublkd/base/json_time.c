/* SPDX-License-Identifier: MIT */
/* Points of time in JSON: RFC 3339, UTC. */
#include "ublkd/base/json_time.h"

#include "ublkd/base/clock.h"

#include <stdio.h>
#include <time.h>

bool json_add_time(cJSON *object, const char *name, uint64_t usec)
{
        char text[64];
        time_t seconds = (time_t)(usec / USEC_PER_SEC);
        struct tm tm;
        size_t n;

        if (usec == 0 || !gmtime_r(&seconds, &tm))
                return cJSON_AddNullToObject(object, name) != NULL;
        n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
        snprintf(text + n, sizeof(text) - n, ".%03uZ", (unsigned)(usec % USEC_PER_SEC / 1000));
        return cJSON_AddStringToObject(object, name, text) != NULL;
}
