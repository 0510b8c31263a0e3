/* SPDX-License-Identifier: MIT */
/* Tests of bars and curves. */
#include "tests/unit/check.h"
#include "ublkctl/text/bars.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/base/utf8.h"

static void test_bars(void)
{
        static const struct {
                double share;
                size_t width;
                bool blocks;
                const char *text;
        } samples[] = {
                {0,     4, true,  ""            },
                {1,     4, true,  "████"},
                {0.5,   4, true,  "██"      },
                {0.625, 4, true,  "██▌"   },
                {0.001, 4, true,  "▏"         },
                {-1,    4, true,  ""            },
                {7,     2, true,  "██"      },
                {1,     4, false, "####"        },
                {0.001, 4, false, "#"           },
        };
        char text[BAR_SIZE];

        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                bar_draw(samples[i].share, samples[i].width, samples[i].blocks, text);
                CHECK_STR(text, samples[i].text);
        }
        bar_draw(1, 100000, true, text);
        CHECK_INT(utf8_count(text), BAR_MAX);
        bar_draw(0.9999, BAR_MAX, true, text);
        CHECK(utf8_count(text) <= BAR_MAX);
}

static void test_curves(void)
{
        const double values[] = {0, 1, 50, 100}, many[CURVE_MAX + 10] = {9, 9, 9};
        char text[CURVE_SIZE];

        curve_draw(values, ARRAY_SIZE(values), true, text);
        CHECK_STR(text, "▁▂▅█");
        curve_draw(values, ARRAY_SIZE(values), false, text);
        CHECK_STR(text, "_.=#");
        curve_draw(values, 1, true, text);
        CHECK_STR(text, "▁");
        curve_draw(values, 0, true, text);
        CHECK_STR(text, "");
        curve_draw(many, ARRAY_SIZE(many), false, text); /* the first ten are left out */
        CHECK_INT(utf8_count(text), CURVE_MAX);
        CHECK_INT(text[0], '_');
}

int main(void)
{
        test_bars();
        test_curves();
        return check_report();
}
