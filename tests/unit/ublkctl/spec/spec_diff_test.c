/* SPDX-License-Identifier: MIT */
/* Tests of the differences between two specs. */
#include "tests/unit/check.h"
#include "ublkctl/spec/spec_diff.h"
#include "ublkd/base/cleanup.h"

static void note(void *userdata, const char *field, const cJSON *old, const cJSON *new)
{
        char *text = userdata;

        sprintf(text + strlen(text), "%s%s%s ", field, old ? "" : "+", new ? "" : "-");
}

int main(void)
{
        static const struct {
                const char *old, *new, *fields;
        } samples[] = {
                {"{}",                                     "{}",                                    ""                 },
                {"{\"size\":\"1GiB\"}",                    "{\"size\":1073741824}",                 ""                 },
                {"{\"size\":\"1GiB\"}",                    "{\"size\":\"1024MiB\"}",                ""                 },
                {"{\"size\":\"1GiB\"}",                    "{\"size\":\"2GiB\"}",                   "size "            },
                {"{\"r\":{\"giveUpAfter\":\"60s\"}}",      "{\"r\":{\"giveUpAfter\":\"1min\"}}",    ""                 },
                {"{\"labels\":{\"a\":\"1KiB\"}}",          "{\"labels\":{\"a\":\"1024\"}}",         "labels.a "        },
                {"{\"labels\":{\"a\":\"1\",\"b\":\"2\"}}", "{\"labels\":{\"b\":\"2\",\"c\":\"\"}}",
                 "labels.c+ labels.a- "                                                                                },
                {"{}",                                     "{\"queueDepth\":128}",                  ""                 },
                {"{\"queueDepth\":64}",                    "{}",                                    "queueDepth "      },
                {"{}",                                     "{\"recovery\":{\"trigger\":\"auto\"}}", ""                 },
                {"{}",                                     "{\"recovery\":{\"trigger\":\"x\"}}",    "recovery.trigger "},
                {"{\"recovery\":{\"trigger\":\"auto\"}}",  "{}",                                    ""                 },
                {"{\"target\":{\"type\":\"a\"}}",          "{\"target\":{\"type\":\"a\",\"o\":0}}", ""                 },
                {"{\"target\":{\"type\":\"a\"}}",          "{\"target\":{\"type\":\"b\"}}",         "target.type "     },
                {"{\"cpus\":\"0\"}",                       "{}",                                    "cpus- "           },
        };
        cJSON *schema = cJSON_Parse(
                      "{\"properties\":{\"queueDepth\":{\"default\":128},\"recovery\":{\"properties\":"
                      "{\"trigger\":{\"default\":\"auto\"}}}}}"),
              *target = cJSON_Parse("{\"properties\":{\"o\":{\"default\":0}}}");

        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                cJSON *old = cJSON_Parse(samples[i].old), *new = cJSON_Parse(samples[i].new);
                char fields[256] = "";

                CHECK_INT(
                        spec_diff(old, new, schema, target, note, fields) > 0, samples[i].fields[0] != '\0');
                CHECK_STR(fields, samples[i].fields);
                cJSON_Delete(old);
                cJSON_Delete(new);
        }
        cJSON_Delete(schema);
        cJSON_Delete(target);
        return check_report();
}
