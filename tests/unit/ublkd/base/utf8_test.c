/* SPDX-License-Identifier: MIT */
/* utf8: what is UTF-8 and what is not. */
#include "ublkd/base/utf8.h"

#include "tests/unit/check.h"

#include "ublkd/base/cleanup.h"

#include <string.h>

static const struct {
        const char *text;
        const char *repaired; /* NULL: it is UTF-8 */
        size_t count;         /* of the characters then */
} cases[] = {
        {"",                                                 NULL,              0},
        {"plain",                                            NULL,              5},
        {"\x7f",                                             NULL,              1},
        {"\xc2\x80\xdf\xbf",                                 NULL,              2},
        {"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", NULL,              4},
        {"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",                 NULL,              2},
        {"a\x80z",                                           "a?z",             0}, /* a continuation alone */
        {"\xc0\x80",                                         "??",              0}, /* overlong */
        {"\xc1\xbf",                                         "??",              0}, /* overlong */
        {"\xe0\x9f\xbf",                                     "???",             0}, /* overlong */
        {"\xf0\x8f\xbf\xbf",                                 "????",            0}, /* overlong */
        {"\xed\xa0\x80",                                     "???",             0}, /* a surrogate */
        {"\xf4\x90\x80\x80",                                 "????",            0}, /* beyond U+10FFFF */
        {"\xf5\x80\x80\x80",                                 "????",            0}, /* beyond U+10FFFF */
        {"\xff",                                             "?",               0},
        {"\xe2\x82",                                         "??",              0}, /* cut off */
        {"\xe2\x82\xac\xe2\x28\xa1",                         "\xe2\x82\xac?(?", 0},
};

static void a_character_is_decoded(void)
{
        static const struct {
                const char *text;
                size_t length;
                uint32_t point;
        } decoded[] = {
                {"",                 1, 0       },
                {"az",               1, 'a'     },
                {"\xc2\x80",         2, 0x80    },
                {"\xdf\xbfz",        2, 0x7ff   },
                {"\xe2\x82\xac",     3, 0x20ac  },
                {"\xef\xbf\xbf",     3, 0xffff  },
                {"\xf0\x90\x80\x80", 4, 0x10000 },
                {"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
                {"\xe2\x82",         0, 7       }, /* untouched */
                {"\xed\xa0\x80",     0, 7       },
                {"\x80",             0, 7       },
        };

        for (size_t i = 0; i < ARRAY_SIZE(decoded); i++) {
                size_t size = strlen(decoded[i].text);
                uint32_t point = 7;

                CHECK_INT(utf8_decode(decoded[i].text, size > 0 ? size : 1, &point), decoded[i].length);
                CHECK_INT(point, decoded[i].point);
        }
}

int main(void)
{
        a_character_is_decoded();
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[16];

                strcpy(text, cases[i].text);
                if (CHECK_INT(utf8_is_valid(text, strlen(text)), !cases[i].repaired) && !cases[i].repaired)
                        CHECK_INT(utf8_count(text), cases[i].count);
                utf8_repair(text);
                CHECK_STR(text, cases[i].repaired ? cases[i].repaired : cases[i].text);
        }
        CHECK(utf8_is_valid("a\0b", 3));
        CHECK_INT(utf8_length("\xe2\x82\xac", 2), 0);
        CHECK_INT(utf8_length("\xe2\x82\xac", 3), 3);
        return check_report();
}
