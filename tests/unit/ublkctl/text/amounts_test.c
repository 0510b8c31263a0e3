/* SPDX-License-Identifier: MIT */
/* Tests of numbers for people. */
#include "tests/unit/check.h"
#include "ublkctl/text/amounts.h"
#include "ublkd/base/cleanup.h"

int main(void)
{
        static const struct {
                void (*format)(double value, char ret[static AMOUNT_TEXT_SIZE]);
                double value;
                const char *text;
        } samples[] = {
                {format_bytes,       0,                     "0B"     },
                {format_bytes,       1023,                  "1023B"  },
                {format_bytes,       1024,                  "1KiB"   },
                {format_bytes,       1536,                  "1.50KiB"},
                {format_bytes,       10.0 * (1 << 30),      "10GiB"  },
                {format_bytes,       1024.0 * (1ULL << 40), "1024TiB"},
                {format_bytes,       12.34 * 1024,          "12.3KiB"},
                {format_bytes,       123.4 * 1024,          "123KiB" },
                {format_count,       0,                     "0"      },
                {format_count,       999,                   "999"    },
                {format_count,       999.6,                 "1000"   },
                {format_count,       1234,                  "1.23k"  },
                {format_count,       123456,                "123k"   },
                {format_count,       45678901,              "45.7M"  },
                {format_count,       9.996e3,               "10.0k"  },
                {format_nanoseconds, -1,                    "-"      },
                {format_nanoseconds, 870,                   "870ns"  },
                {format_nanoseconds, 12345,                 "12.3us" },
                {format_nanoseconds, 4560000,               "4.56ms" },
                {format_nanoseconds, 1.2e9,                 "1.20s"  },
        };

        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                char text[AMOUNT_TEXT_SIZE];

                samples[i].format(samples[i].value, text);
                CHECK_STR(text, samples[i].text);
        }
        return check_report();
}
