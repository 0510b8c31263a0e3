/* SPDX-License-Identifier: MIT */
/* How much names differ. */
#include "ublkd/values/name_distance.h"

#include "tests/unit/check.h"

static void test_letters_that_differ(void)
{
        static const struct {
                const char *one, *other;
                size_t distance;
        } cases[] = {
                {"",                "",               0},
                {"",                "abc",            3},
                {"abc",             "",               3},
                {"StateDirectory",  "StateDirectory", 0},
                {"statedirectory",  "StateDirectory", 0},
                {"StateDirectoy",   "StateDirectory", 1},
                {"StateDirectoryy", "StateDirectory", 1},
                {"StateDirektory",  "StateDirectory", 1},
                {"Sttae",           "State",          2},
                {"kitten",          "sitting",        3},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                CHECK_INT(name_distance(cases[i].one, cases[i].other), cases[i].distance);
                CHECK_INT(name_distance(cases[i].other, cases[i].one), cases[i].distance);
        }
}

static void test_names_that_are_too_long(void)
{
        static const char most[] = "12345678901234567890123456789012",
                          more[] = "123456789012345678901234567890123";

        CHECK_INT(name_distance(most, ""), 32);
        CHECK_INT(name_distance("", most), 32);
        CHECK(name_distance(more, "") == SIZE_MAX);
        CHECK(name_distance("", more) == SIZE_MAX);
}

int main(void)
{
        test_letters_that_differ();
        test_names_that_are_too_long();
        return check_report();
}
