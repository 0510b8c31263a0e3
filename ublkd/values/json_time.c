/* SPDX-License-Identifier: MIT */
/* Points of time in JSON: RFC 3339, UTC. */
#include "ublkd/values/json_time.h"

#include "ublkd/base/clock.h"

#include <stdio.h>
#include <time.h>

bool time_format(uint64_t usec, char ret[static TIME_TEXT_SIZE])
{
        time_t seconds = (time_t)(usec / USEC_PER_SEC);
        struct tm tm;
        size_t n;

        *ret = '\0';
        if (!gmtime_r(&seconds, &tm))
                return false;
        n = strftime(ret, TIME_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
        snprintf(ret + n, TIME_TEXT_SIZE - n, ".%03uZ", (unsigned)(usec % USEC_PER_SEC / 1000));
        return n > 0;
}

bool json_add_time(cJSON *object, const char *name, uint64_t usec)
{
        char text[TIME_TEXT_SIZE];

        if (usec == 0 || !time_format(usec, text))
                return cJSON_AddNullToObject(object, name) != NULL;
        return cJSON_AddStringToObject(object, name, text) != NULL;
}
