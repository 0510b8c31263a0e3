/* SPDX-License-Identifier: MIT */
/* Tests of specs from files, in all forms of a list. */
#include "tests/unit/check.h"
#include "ublkctl/spec/documents.h"
#include "ublkd/base/cleanup.h"

static void check_parse(const char *text, enum exit_status status, const char *names)
{
        struct documents documents = {};
        char got[256] = "";

        CHECK_INT(documents_parse(&documents, text, "test"), status);
        for (size_t i = 0; i < documents.count; i++) {
                const cJSON *name = cJSON_GetObjectItem(documents.items[i].spec, "name");

                strcat(got, name ? name->valuestring : "?");
                CHECK_STR(documents.items[i].source, "test");
        }
        CHECK_STR(got, names);
        documents_clear(&documents);
        documents_clear(&documents);
}

int main(void)
{
        static const struct {
                const char *text;
                enum exit_status status;
                const char *names;
        } samples[] = {
                {"{\"name\":\"a\"}",                                         STATUS_OK,     "a"  },
                {" {\"name\":\"a\"}\n{\"name\":\"b\"}{\"name\":\"c\"}\n",    STATUS_OK,     "abc"},
                {"[{\"name\":\"a\"},{\"name\":\"b\"}] {\"name\":\"c\"}",     STATUS_OK,     "abc"},
                {"{\"items\":[{\"name\":\"a\"},{\"name\":\"b\"}]}",          STATUS_OK,     "ab" },
                {"{\"items\":[{\"name\":\"x\",\"spec\":{\"name\":\"a\"}}]}", STATUS_OK,     "a"  },
                {"[]",                                                       STATUS_OK,     ""   },
                {"{}",                                                       STATUS_OK,     "?"  },
                {"",                                                         STATUS_FAILED, ""   },
                {" \n",                                                      STATUS_FAILED, ""   },
                {"3",                                                        STATUS_FAILED, ""   },
                {"[{\"name\":\"a\"}, 3, {\"name\":\"b\"}]",                  STATUS_FAILED, "ab" },
                {"{\"name\":\"a\"} {\"name\":",                              STATUS_FAILED, "a"  },
                {"{\"name\":\"a\"} x {\"name\":\"b\"}",                      STATUS_FAILED, "a"  },
        };

        for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
                check_parse(samples[i].text, samples[i].status, samples[i].names);
        return check_report();
}
