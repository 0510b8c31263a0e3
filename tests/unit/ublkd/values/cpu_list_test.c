/* SPDX-License-Identifier: MIT */
/* CPU lists. */
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/values/cpu_list.h"

static void test_good(void)
{
        unsigned char mask[2] = {0xff, 0xff};

        CHECK_INT(parse_cpu_list("0", mask, sizeof(mask)), 0);
        CHECK_INT(mask[0], 0x01);
        CHECK_INT(mask[1], 0x00);
        CHECK_INT(parse_cpu_list("0-3,8", mask, sizeof(mask)), 0);
        CHECK_INT(mask[0], 0x0f);
        CHECK_INT(mask[1], 0x01);
        CHECK_INT(parse_cpu_list("9,7-8,8,0000015", mask, sizeof(mask)), 0);
        CHECK_INT(mask[0], 0x80);
        CHECK_INT(mask[1], 0x83);
        CHECK_INT(parse_cpu_list("0-15", mask, sizeof(mask)), 0);
        CHECK_INT(mask[0] & mask[1], 0xff);
}

static void test_bad_leaves_the_mask(void)
{
        static const struct {
                const char *text;
                int result;
        } samples[] = {
                {"",                        -EINVAL},
                {",",                       -EINVAL},
                {"0,",                      -EINVAL},
                {"-1",                      -EINVAL},
                {"1-",                      -EINVAL},
                {"1-2-3",                   -EINVAL},
                {"3-1",                     -EINVAL},
                {"a",                       -EINVAL},
                {"0 1",                     -EINVAL},
                {"0,,1",                    -EINVAL},
                {"1\n",                     -EINVAL},
                {"16",                      -ERANGE},
                {"0-16",                    -ERANGE},
                {"99999999999999999999999", -ERANGE},
        };

        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                unsigned char mask[2] = {0x12, 0x34};

                if (!CHECK_INT(parse_cpu_list(samples[i].text, mask, sizeof(mask)), samples[i].result))
                        fprintf(stderr, "    for \"%s\"\n", samples[i].text);
                CHECK_INT(mask[0], 0x12);
                CHECK_INT(mask[1], 0x34);
        }
}

static void test_written_as_it_is_read(void)
{
        static const char *const lists[] = {"0", "15", "0-15", "0-3,8", "1,3,5-6", "7-8"};

        for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
                _cleanup_free_ char *list = NULL;
                unsigned char mask[2];

                CHECK_INT(parse_cpu_list(lists[i], mask, sizeof(mask)), 0);
                CHECK_INT(format_cpu_list(mask, sizeof(mask), &list), 0);
                CHECK_STR(list, lists[i]);
        }
}

int main(void)
{
        test_good();
        test_bad_leaves_the_mask();
        test_written_as_it_is_read();
        return check_report();
}
