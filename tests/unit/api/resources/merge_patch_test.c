/* SPDX-License-Identifier: MIT */
/* merge_patch: the examples of RFC 7396, and what it says nothing about. */
#include "api/resources/merge_patch.h"

#include "tests/unit/check.h"

#include <stdlib.h>

struct example {
        const char *target, *patch, *result;
};

static void check_example(const struct example *example)
{
        _cleanup_problems_ struct problem_list problems = {};
        cJSON *target = example->target ? cJSON_Parse(example->target) : NULL,
              *patch = cJSON_Parse(example->patch), *result = NULL;
        char *before = cJSON_PrintUnformatted(target), *text = NULL;

        if (CHECK_INT(merge_patch(target, patch, &result, &problems), 0)) {
                text = cJSON_PrintUnformatted(result);
                CHECK_STR(text, example->result);
                CHECK(problems.count == 0);
        }
        free(text);
        text = cJSON_PrintUnformatted(target);
        CHECK_STR(text, before);
        free(text);
        free(before);
        cJSON_Delete(target);
        cJSON_Delete(patch);
        cJSON_Delete(result);
}

/* Appendix A, in its order. */
static void test_examples_of_the_rfc(void)
{
        static const struct example examples[] = {
                {"{\"a\":\"b\"}",                                                                              "{\"a\":\"c\"}",                                  "{\"a\":\"c\"}"                                                                                      },
                {"{\"a\":\"b\"}",                                                                              "{\"b\":\"c\"}",                                  "{\"a\":\"b\",\"b\":\"c\"}"                                                                          },
                {"{\"a\":\"b\"}",                                                                              "{\"a\":null}",                                   "{}"                                                                                                 },
                {"{\"a\":\"b\",\"b\":\"c\"}",                                                                  "{\"a\":null}",                                   "{\"b\":\"c\"}"                                                                                      },
                {"{\"a\":[\"b\"]}",                                                                            "{\"a\":\"c\"}",                                  "{\"a\":\"c\"}"                                                                                      },
                {"{\"a\":\"c\"}",                                                                              "{\"a\":[\"b\"]}",                                "{\"a\":[\"b\"]}"                                                                                    },
                {"{\"a\":{\"b\":\"c\"}}",                                                                      "{\"a\":{\"b\":\"d\",\"c\":null}}",               "{\"a\":{\"b\":\"d\"}}"                                                                              },
                {"{\"a\":[{\"b\":\"c\"}]}",                                                                    "{\"a\":[1]}",                                    "{\"a\":[1]}"                                                                                        },
                {"[\"a\",\"b\"]",                                                                              "[\"c\",\"d\"]",                                  "[\"c\",\"d\"]"                                                                                      },
                {"{\"a\":\"b\"}",                                                                              "[\"c\"]",                                        "[\"c\"]"                                                                                            },
                {"{\"a\":\"foo\"}",                                                                            "null",                                           "null"                                                                                               },
                {"{\"a\":\"foo\"}",                                                                            "\"bar\"",                                        "\"bar\""                                                                                            },
                {"{\"e\":null}",                                                                               "{\"a\":1}",                                      "{\"e\":null,\"a\":1}"                                                                               },
                {"[1,2]",                                                                                      "{\"a\":\"b\",\"c\":null}",                       "{\"a\":\"b\"}"                                                                                      },
                {"{}",                                                                                         "{\"a\":{\"bb\":{\"ccc\":null}}}",                "{\"a\":{\"bb\":{}}}"                                                                                },
                /* the example of section 3 */
                {"{\"title\":\"Goodbye!\",\"author\":{\"givenName\":\"John\",\"familyName\":\"Doe\"},"
                 "\"tags\":[\"example\",\"sample\"],\"content\":\"This will be unchanged\"}", "{\"title\":\"Hello!\",\"phoneNumber\":\"+01-123-456-7890\",\"author\":{"
                        "\"familyName\":null},"
                        "\"tags\":[\"example\"]}", "{\"title\":\"Hello!\",\"author\":{\"givenName\":\"John\"},\"tags\":[\"example\"],"
                        "\"content\":\"This will be unchanged\",\"phoneNumber\":\"+01-123-456-7890\"}"},
                /* the example of section 1 */
                {"{\"a\":\"b\",\"c\":{\"d\":\"e\",\"f\":\"g\"}}",                                              "{\"a\":\"z\",\"c\":{\"f\":null}}",
                 "{\"a\":\"z\",\"c\":{\"d\":\"e\"}}"                                                                                                                                                                                                                  },
        };

        for (size_t i = 0; i < ARRAY_SIZE(examples); i++)
                check_example(&examples[i]);
}

static void test_beyond_the_examples(void)
{
        static const struct example examples[] = {
                {NULL,                        "{\"a\":{\"b\":null,\"c\":1}}", "{\"a\":{\"c\":1}}"        },
                {NULL,                        "7",                            "7"                        },
                {"{\"a\":1,\"A\":2}",         "{\"A\":null}",                 "{\"a\":1}"                }, /* case matters */
                {"{\"a\":1,\"b\":2,\"c\":3}", "{\"b\":4}",                    "{\"a\":1,\"b\":4,\"c\":3}"}, /* in place */
                {"{\"a\":[{\"b\":null}]}",    "{\"a\":[{\"b\":null}]}",
                 "{\"a\":[{\"b\":null}]}"                                                                }, /* arrays are values */
                {"{\"\":1}",                  "{\"\":null}",                  "{}"                       },
                {"{\"a\":7}",                 "{\"a\":{\"b\":{}}}",           "{\"a\":{\"b\":{}}}"       },
        };

        for (size_t i = 0; i < ARRAY_SIZE(examples); i++)
                check_example(&examples[i]);
}

static void test_a_name_twice_is_refused(void)
{
        static const struct {
                const char *patch, *pointer;
        } cases[] = {
                {"{\"a\":1,\"a\":1}",                  "/a"      },
                {"{\"a\":null,\"b\":0,\"a\":1}",       "/a"      },
                {"{\"x/y\":{\"~\":1,\"~\":2}}",        "/x~1y/~0"},
                {"{\"a\":1,\"\\u0061\":2}",            "/a"      },
                {"{\"o\":{\"p\":{\"q\":1,\"q\":{}}}}", "/o/p/q"  },
                {"{\"l\":[0,[{\"b\":1,\"b\":2}]]}",    "/l/1/0/b"},
                {"[{\"a\":1},{\"a\":1,\"a\":2}]",      "/1/a"    },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_problems_ struct problem_list problems = {};
                cJSON *patch = cJSON_Parse(cases[i].patch), *result = NULL;

                CHECK_INT(merge_patch(NULL, patch, &result, &problems), -EINVAL);
                CHECK(!result);
                if (CHECK_INT(problems.count, 1)) {
                        CHECK_STR(problems.items[0].pointer, cases[i].pointer);
                        CHECK_STR(problems.items[0].reason, "DuplicateField");
                }
                cJSON_Delete(patch);
        }
}

/* A pointer of any length is cut, not overrun. */
static void test_long_names(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        cJSON *patch = cJSON_CreateObject(), *inner = patch, *result = NULL;
        char name[400];

        memset(name, '~', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        for (int i = 0; i < 5; i++)
                inner = cJSON_AddObjectToObject(inner, name);
        cJSON_AddNullToObject(inner, name);
        cJSON_AddNullToObject(inner, name);
        CHECK_INT(merge_patch(NULL, patch, &result, &problems), -EINVAL);
        CHECK_INT(problems.count, 1);
        cJSON_Delete(patch);
}

static size_t mallocs_left;

static void *failing_malloc(size_t size)
{
        return mallocs_left-- > 0 ? malloc(size) : NULL;
}

/* Every malloc fails once: an error each time, and nothing is lost or freed twice. */
static void test_out_of_memory(void)
{
        cJSON *target = cJSON_Parse("{\"a\":{\"b\":[1,\"x\"]},\"c\":2}"),
              *patch = cJSON_Parse("{\"a\":{\"d\":{\"e\":\"f\"}},\"c\":null,\"g\":\"h\"}");
        int r = -ENOMEM;

        for (size_t n = 0; r == -ENOMEM && n < 1000; n++) {
                _cleanup_problems_ struct problem_list problems = {};
                cJSON_Hooks hooks = {.malloc_fn = failing_malloc, .free_fn = free};
                cJSON *result = NULL;

                mallocs_left = n;
                cJSON_InitHooks(&hooks);
                r = merge_patch(target, patch, &result, &problems);
                cJSON_InitHooks(NULL);
                CHECK((r == 0) == (result != NULL));
                CHECK(n > 0 || r == -ENOMEM);
                cJSON_Delete(result);
        }
        CHECK_INT(r, 0);
        cJSON_Delete(target);
        cJSON_Delete(patch);
}

int main(void)
{
        test_examples_of_the_rfc();
        test_beyond_the_examples();
        test_a_name_twice_is_refused();
        test_long_names();
        test_out_of_memory();
        return check_report();
}
