/* SPDX-License-Identifier: MIT */
/* Points of time, as the API writes them, for people. */
#include "ublkctl/text/times.h"

#include "ublkd/base/cleanup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

bool time_parse(const char *text, int64_t *ret)
{
        struct tm parts = {};
        const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &parts) : NULL;

        if (!end)
                return false;
        if (*end == '.')
                end += 1 + strspn(end + 1, "0123456789");
        if (strcmp(end, "Z") != 0)
                return false;
        *ret = timegm(&parts);
        return true;
}

void time_show(const char *text, bool local, char ret[static TIME_SHOWN_SIZE])
{
        struct tm parts;
        int64_t seconds;
        time_t at;

        if (local && time_parse(text, &seconds)) {
                at = (time_t)seconds;
                if (localtime_r(&at, &parts)
                        && strftime(ret, TIME_SHOWN_SIZE, "%Y-%m-%d %H:%M:%S", &parts) > 0)
                        return;
        }
        snprintf(ret, TIME_SHOWN_SIZE, "%s", text ? text : "-");
}

void format_age(int64_t seconds, char ret[static AGE_SIZE])
{
        static const struct {
                int64_t seconds;
                char unit;
        } units[] = {
                {INT64_C(365) * 86400, 'y'},
                {86400,                'd'},
                {3600,                 'h'},
                {60,                   'm'},
                {1,                    's'},
        };
        const int64_t small = 10; /* a number below it is followed by the next unit */
        size_t i = 0;
        int64_t first, second;

        if (seconds < 0)
                seconds = 0;
        while (i + 1 < ARRAY_SIZE(units) && seconds < units[i].seconds)
                i++;
        first = seconds / units[i].seconds;
        second = i + 1 < ARRAY_SIZE(units) ? seconds % units[i].seconds / units[i + 1].seconds : 0;
        if (first < small && second > 0)
                snprintf(ret, AGE_SIZE, "%" PRId64 "%c%" PRId64 "%c", first, units[i].unit, second,
                        units[i + 1].unit);
        else
                snprintf(ret, AGE_SIZE, "%" PRId64 "%c", first, units[i].unit);
}

void time_age(const char *text, char ret[static AGE_SIZE])
{
        int64_t seconds;

        if (time_parse(text, &seconds))
                format_age((int64_t)time(NULL) - seconds, ret);
        else
                snprintf(ret, AGE_SIZE, "-");
}
