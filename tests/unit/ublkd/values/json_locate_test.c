/* SPDX-License-Identifier: MIT */
/* json_locate: the line of a pointer, also where a text misleads. */
#include "ublkd/values/json_locate.h"

#include "tests/unit/check.h"

static const char text[] = "\n"
                           "[{\"name\": \"a, ]} \\\" {\",\n"      /* 2 */
                           "  \"target\": {\n"                    /* 3 */
                           "    \"type\": \"loop\", \"x\": [1,\n" /* 4 */
                           "      {\"y\": -1.5e3}, [],\n"         /* 5 */
                           "      true]\n"                        /* 6 */
                           "  },\n"                               /* 7 */
                           "  \"a/b~\": null},\n"                 /* 8 */
                           " {}, {\"size\":\n"                    /* 9 */
                           "    12}]\n";                          /* 10 */

static void test_lines(void)
{
        static const struct {
                const char *pointer;
                size_t line;
        } cases[] = {
                {"",                  2}, /* the document */
                {"/0",                2},
                {"/0/name",           2},
                {"/0/target",         3},
                {"/0/target/type",    4},
                {"/0/target/x/0",     4},
                {"/0/target/x/1/y",   5},
                {"/0/target/x/3",     6},
                {"/0/a~1b~0",         8},
                {"/1",                9},
                {"/2/size",           9},
                {"/0/target/missing", 3}, /* the innermost that there is */
                {"/0/targe",          2},
                {"/0/target/x/9/y",   4},
                {"/7/size",           2},
                {"/0/name/deeper",    2},
                {"/name",             2}, /* of an array */
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                if (!CHECK_INT(json_locate(text, cases[i].pointer), cases[i].line))
                        fprintf(stderr, "  of %s\n", cases[i].pointer);
}

static void test_a_scalar(void)
{
        CHECK_INT(json_locate("\n\n 12", "/a"), 3);
        CHECK_INT(json_locate("{}", "/a/b"), 1);
}

int main(void)
{
        test_lines();
        test_a_scalar();
        return check_report();
}
