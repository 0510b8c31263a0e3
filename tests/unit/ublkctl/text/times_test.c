/* SPDX-License-Identifier: MIT */
/* Tests of times for people. */
#include "tests/unit/check.h"
#include "ublkctl/text/times.h"
#include "ublkd/base/cleanup.h"

#include <stdlib.h>
#include <time.h>

static void test_ages(void)
{
        static const struct {
                int64_t seconds;
                const char *text;
        } samples[] = {
                {-5,                           "0s"        },
                {0,                            "0s"        },
                {59,                           "59s"       },
                {60,                           "1m"        },
                {75,                           "1m15s"     },
                {10 * 60 + 59,                 "10m"       },
                {3 * 3600 + 5 * 60,            "3h5m"      },
                {3 * 3600 + 59,                "3h"        },
                {14 * 3600 + 59 * 60,          "14h"       },
                {2 * 86400 + 3 * 3600,         "2d3h"      },
                {40 * 86400 + 3600,            "40d"       },
                {INT64_C(400) * 86400,         "1y35d"     },
                {INT64_C(20) * 365 * 86400,    "20y"       },
                {INT64_C(99999999999) * 86400, "273972602y"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                char text[AGE_SIZE];

                format_age(samples[i].seconds, text);
                CHECK_STR(text, samples[i].text);
        }
}

static void test_parsing(void)
{
        static const char *const others[] = {"", "now", "2026-11-22", "2026-11-22T10:00:00",
                "2026-11-22T10:00:00+01:00", "2026-11-22T10:00:00.161Zz", "2026-13-22T10:00:00Z"};
        int64_t seconds = 0;

        CHECK(time_parse("1970-01-02T00:00:01.999Z", &seconds) && seconds == 86401);
        CHECK(time_parse("2026-11-22T10:00:00Z", &seconds) && seconds == 1795341600);
        CHECK(!time_parse(NULL, &seconds));
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (!CHECK(!time_parse(others[i], &seconds)))
                        fprintf(stderr, "    for \"%s\"\n", others[i]);
}

static void test_local_times(void)
{
        char text[TIME_SHOWN_SIZE], age[AGE_SIZE];

        setenv("TZ", "UTC-9", 1); /* nine hours ahead */
        tzset();
        time_show("2026-11-22T20:30:00.161Z", true, text);
        CHECK_STR(text, "2026-11-23 05:30:00");
        time_show("2026-11-22T20:30:00.161Z", false, text);
        CHECK_STR(text, "2026-11-22T20:30:00.161Z");
        time_show("soon", true, text);
        CHECK_STR(text, "soon");
        time_show(NULL, true, text);
        CHECK_STR(text, "-");
        time_age(NULL, age);
        CHECK_STR(age, "-");
}

int main(void)
{
        test_ages();
        test_parsing();
        test_local_times();
        return check_report();
}
