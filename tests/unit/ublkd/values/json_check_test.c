/* SPDX-License-Identifier: MIT */
/* json_check: RFC 8259 to the letter, and where the fault is. What it accepts, the parser behind it accepts
 * too. */
#include "ublkd/values/json_check.h"

#include "tests/unit/check.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>

static void test_good(void)
{
        static const char *const texts[] = {
                "{}",
                " [ ] ",
                "null",
                "true",
                "false",
                "0",
                "-0",
                "-1.5e+10",
                "1E-2",
                "123456789012345678901234567890",
                "\"\"",
                "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\"",
                "\"\\ud83d\\ude00\"",
                "\"\xf0\x9f\x98\x80\xc3\xa9\xe2\x82\xac\"",
                "\"\\\\u0000\"",
                "{\"a\":{\"b\":[1,2,{\"c\":null}]},\"a\":1}",
                "\n[1\t,\r2]\n",
                "\"\x7f\"",
        };
        struct json_fault fault;

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                cJSON *document = cJSON_Parse(texts[i]);

                if (!CHECK_INT(json_check(texts[i], strlen(texts[i]), &fault), 0))
                        fprintf(stderr, "%s: %s\n", texts[i], fault.what);
                CHECK(document);
                cJSON_Delete(document);
        }
}

static void test_faults(void)
{
        static const struct {
                const char *text;
                size_t line, column;
        } faults[] = {
                {"",                     1, 1 },
                {"{\"a\":1,}",           1, 8 },
                {"[1 2]",                1, 4 },
                {"{\n \"a\": 01\n}",     2, 8 },
                {"[\n\n  tru]",          3, 3 },
                {"{} x",                 1, 4 },
                {"\"\x01\"",             1, 2 },
                {"\"\xed\xa0\x80\"",     1, 2 }, /* a surrogate */
                {"\"\xc0\xaf\"",         1, 2 }, /* overlong */
                {"\"\xf4\x90\x80\x80\"", 1, 2 }, /* beyond U+10FFFF */
                {"\"\xe2\x82\"",         1, 2 }, /* cut short */
                {"\"\\u12g4\"",          1, 3 },
                {"\"\\ud83dx\"",         1, 8 },
                {"\"\\ud83d\\u0041\"",   1, 14},
                {"\"abc",                1, 5 },
                {"\"abc\\",              1, 6 },
                {"{\"a\"",               1, 5 },
                {"{\"a\":",              1, 6 },
                {"[",                    1, 2 },
                {"-",                    1, 2 },
                {"1.",                   1, 3 },
                {"1e+",                  1, 4 },
                {"[1e400]",              1, 7 },
        };

        for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
                struct json_fault fault = {};

                if (!CHECK_INT(json_check(faults[i].text, strlen(faults[i].text), &fault), -EINVAL))
                        continue;
                if (!CHECK_INT(fault.line, faults[i].line) || !CHECK_INT(fault.column, faults[i].column)
                        || !CHECK(fault.what))
                        fprintf(stderr, "in: %s\n", faults[i].text);
        }
}

/* A body of 1 MiB of names would take minutes to compare with each other. */
static void test_names_of_one_object(void)
{
        char text[16 * JSON_NAMES_MAX];
        struct json_fault fault;

        for (int names = JSON_NAMES_MAX; names <= JSON_NAMES_MAX + 1; names++) {
                size_t used = 0;

                for (int i = 0; i < names; i++)
                        used += (size_t)sprintf(text + used, "%s\"%d\":{}", i == 0 ? "{" : ",", i);
                strcpy(text + used, "}");
                CHECK_INT(json_check(text, strlen(text), &fault), names > JSON_NAMES_MAX ? -EINVAL : 0);
        }
        memset(text, '0', 1024);
        text[0] = '[';
        for (size_t i = 2; i < 1022; i += 2)
                text[i] = ',';
        strcpy(text + 1022, "]");
        CHECK_INT(json_check(text, strlen(text), &fault), 0); /* elements of an array have no names */
}

static void test_nul_is_not_an_end(void)
{
        static const char text[] = "{}\0{}", inside[] = "\"a\0b\"";
        struct json_fault fault;

        CHECK_INT(json_check(text, sizeof(text) - 1, &fault), -EINVAL);
        CHECK_INT(json_check(inside, sizeof(inside) - 1, &fault), -EINVAL);
        CHECK_INT(json_check(text, 2, &fault), 0);
}

static void test_depth(void)
{
        enum { SIZE = 100000 };
        char *text = malloc(SIZE + 1);
        struct json_fault fault;

        if (!CHECK(text))
                return;
        for (int depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
                memset(text, '[', (size_t)depth);
                memset(text + depth, ']', (size_t)depth);
                text[2 * depth] = '\0';
                CHECK_INT(json_check(text, 2 * (size_t)depth, &fault), depth > JSON_DEPTH_MAX ? -EINVAL : 0);
        }
        memset(text, '[', SIZE);
        text[SIZE] = '\0';
        CHECK_INT(json_check(text, SIZE, &fault), -EINVAL);
        free(text);
}

int main(void)
{
        test_good();
        test_faults();
        test_names_of_one_object();
        test_nul_is_not_an_end();
        test_depth();
        return check_report();
}
