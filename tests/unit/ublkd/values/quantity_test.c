/* SPDX-License-Identifier: MIT */
/* Amounts with a unit. */
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/values/quantity.h"

struct sample {
        const char *text;
        int result;
        uint64_t value;
};

static void check_samples(int (*parse)(const char *, uint64_t *), const struct sample *samples, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                uint64_t value = 4711;

                CHECK_INT(parse(samples[i].text, &value), samples[i].result);
                if (!CHECK(value == (samples[i].result == 0 ? samples[i].value : 4711)))
                        fprintf(stderr, "    for \"%s\": %" PRIu64 "\n", samples[i].text, value);
        }
}

static const struct sample bytes[] = {
        {"0",                                0,       0                      },
        {"4096",                             0,       4096                   },
        {"1KiB",                             0,       1024                   },
        {"10GiB",                            0,       UINT64_C(10) << 30     },
        {"4096TiB",                          0,       UINT64_C(1) << 52      },
        {"9223372036854775807",              0,       INT64_MAX              },
        {"9223372036854775808",              -ERANGE, 0                      },
        {"8388608TiB",                       -ERANGE, 0                      },
        {"8388607TiB",                       0,       UINT64_C(8388607) << 40},
        {"99999999999999999999999999999",    -ERANGE, 0                      },
        {"99999999999999999999999999999GiB", -ERANGE, 0                      },
        {"99999999999999999999999999999Gib", -EINVAL, 0                      },
        {"",                                 -EINVAL, 0                      },
        {"GiB",                              -EINVAL, 0                      },
        {"1 GiB",                            -EINVAL, 0                      },
        {" 1GiB",                            -EINVAL, 0                      },
        {"1GiB ",                            -EINVAL, 0                      },
        {"1GB",                              -EINVAL, 0                      },
        {"1K",                               0,       1024                   },
        {"512M",                             0,       UINT64_C(512) << 20    },
        {"1G",                               0,       UINT64_C(1) << 30      },
        {"8388608T",                         -ERANGE, 0                      },
        {"1g",                               -EINVAL, 0                      },
        {"1P",                               -EINVAL, 0                      },
        {"1gib",                             -EINVAL, 0                      },
        {"1.5GiB",                           -EINVAL, 0                      },
        {"01",                               -EINVAL, 0                      },
        {"00",                               -EINVAL, 0                      },
        {"-1",                               -EINVAL, 0                      },
        {"+1",                               -EINVAL, 0                      },
        {"0x10",                             -EINVAL, 0                      },
        {"1e3",                              -EINVAL, 0                      },
};

static const struct sample durations[] = {
        {"0",              0,       0                               },
        {"0s",             0,       0                               },
        {"7us",            0,       7                               },
        {"250ms",          0,       250000                          },
        {"30s",            0,       30000000                        },
        {"5min",           0,       300000000                       },
        {"5m",             0,       300000000                       },
        {"2h",             0,       UINT64_C(7200000000)            },
        {"999999999h",     0,       UINT64_C(999999999) * 3600000000},
        {"9999999999999h", -ERANGE, 0                               },
        {"30",             -EINVAL, 0                               },
        {"s",              -EINVAL, 0                               },
        {"",               -EINVAL, 0                               },
        {"30M",            -EINVAL, 0                               },
        {"-1s",            -EINVAL, 0                               },
        {"1.5s",           -EINVAL, 0                               },
        {"1s1s",           -EINVAL, 0                               },
        {"007s",           -EINVAL, 0                               },
};

static void test_durations_are_written_as_they_are_read(void)
{
        static const struct {
                uint64_t usec;
                const char *text;
        } cases[] = {
                {0,                    "0us"   },
                {1,                    "1us"   },
                {1001,                 "1001us"},
                {250000,               "250ms" },
                {30000000,             "30s"   },
                {90000000,             "90s"   },
                {300000000,            "5min"  },
                {UINT64_C(7200000000), "2h"    },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[DURATION_SIZE];
                uint64_t usec = 1;

                format_duration(cases[i].usec, text);
                CHECK_STR(text, cases[i].text);
                CHECK_INT(parse_duration(text, &usec), 0);
                CHECK(usec == cases[i].usec);
        }
}

static void test_sizes_are_written_as_they_are_read(void)
{
        static const struct {
                uint64_t size;
                const char *text;
        } cases[] = {
                {1024,                 "1KiB"    },
                {33554432,             "32MiB"   },
                {33554432 + 1024,      "32769KiB"},
                {UINT64_C(1) << 40,    "1TiB"    },
                {UINT64_C(4096) << 40, "4096TiB" },
                {UINT64_C(1536) << 30, "1536GiB" },
        };
        char text[SIZE_TEXT_MAX];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t size = 1;

                format_size(cases[i].size, text);
                CHECK_STR(text, cases[i].text);
                CHECK_INT(parse_bytes(text, &size), 0);
                CHECK(size == cases[i].size);
        }
        format_size(0, text);
        CHECK_STR(text, "0 bytes");
        format_size(1000, text);
        CHECK_STR(text, "1000 bytes");
        format_size(UINT64_MAX, text);
        CHECK_STR(text, "18446744073709551615 bytes");
}

static void test_numbers(void)
{
        static const char *const others[] = {"", "self", "-1", "+1", " 1", "1 ", "1.5", "0x1", "1a"};

        CHECK(is_number("0"));
        CHECK(is_number("4194304"));
        CHECK(is_number("18446744073709551616")); /* longer than any variable */
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (!CHECK(!is_number(others[i])))
                        fprintf(stderr, "    for \"%s\"\n", others[i]);
}

int main(void)
{
        test_numbers();
        test_durations_are_written_as_they_are_read();
        test_sizes_are_written_as_they_are_read();
        check_samples(parse_bytes, bytes, ARRAY_SIZE(bytes));
        check_samples(parse_duration, durations, ARRAY_SIZE(durations));
        return check_report();
}
