/* SPDX-License-Identifier: MIT */
/* Tests of FIELD=VALUE arguments. */
#include "tests/unit/check.h"
#include "ublkctl/spec/assignments.h"
#include "ublkd/base/cleanup.h"

static void check_one(const char *argument, const char *wanted)
{
        char *arguments[] = {strdup(argument)};
        cJSON *object = cJSON_CreateObject();
        char *text;

        CHECK_INT(assignments_add(object, 1, arguments), STATUS_OK);
        text = cJSON_PrintUnformatted(object);
        CHECK_STR(text, wanted);
        cJSON_free(text);
        cJSON_Delete(object);
        free(arguments[0]);
}

int main(void)
{
        static const char *const samples[][2] = {
                {"size=10GiB",              "{\"size\":\"10GiB\"}"                  },
                {"size=10G",                "{\"size\":\"10GiB\"}"                  },
                {"size=4096",               "{\"size\":4096}"                       },
                {"size=xG",                 "{\"size\":\"xG\"}"                     },
                {"maxIoSize=1M",            "{\"maxIoSize\":\"1MiB\"}"              },
                {"target.offset=4K",        "{\"target\":{\"offset\":\"4KiB\"}}"    },
                {"labels.size=1G",          "{\"labels\":{\"size\":\"1G\"}}"        },
                {"queues=2",                "{\"queues\":2}"                        },
                {"enabled=false",           "{\"enabled\":false}"                   },
                {"cpus=null",               "{\"cpus\":null}"                       },
                {"cpus=",                   "{\"cpus\":\"\"}"                       },
                {"owner.mode=0660",         "{\"owner\":{\"mode\":\"0660\"}}"       },
                {"target.type=null",        "{\"target\":{\"type\":\"null\"}}"      },
                {"target={\"type\":\"x\"}", "{\"target\":{\"type\":\"x\"}}"         },
                {"a=\"7\"",                 "{\"a\":\"7\"}"                         },
                {"a=x=y",                   "{\"a\":\"x=y\"}"                       },
                {"a=nan",                   "{\"a\":\"nan\"}"                       },
                {"a=-1",                    "{\"a\":-1}"                            },
                {"labels.a.b/c=1",          "{\"labels\":{\"a.b/c\":\"1\"}}"        },
                {"labels.a=true",           "{\"labels\":{\"a\":\"true\"}}"         },
                {"owner.mode=600",          "{\"owner\":{\"mode\":\"600\"}}"        },
                {"recovery.giveUpAfter=0",  "{\"recovery\":{\"giveUpAfter\":\"0\"}}"},
                {"target.path=7",           "{\"target\":{\"path\":\"7\"}}"         },
                {"dataPath=null",           "{\"dataPath\":null}"                   },
                {"dataPath=1",              "{\"dataPath\":\"1\"}"                  },
                {"cpus=3",                  "{\"cpus\":\"3\"}"                      },
                {"labels.a=null",           "{\"labels\":{\"a\":null}}"             },
        };
        char *several[] = {
                strdup("recovery.trigger=manual"), strdup("recovery.onCrash=queue"), strdup("size=1")};
        char *again[] = {strdup("size=2"), strdup("size.x=3"), strdup("sizes=1")};
        char twice_first[] = "size=1", twice_second[] = "size=2", *twice[] = {twice_first, twice_second};
        char label_first[] = "labels.a=1", label_second[] = "labels.a=1",
             *labels[] = {label_first, label_second};
        static const char *const bad[] = {"size", "=1", ".a=1", ""};
        cJSON *object = cJSON_CreateObject();
        char *text;

        for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
                check_one(samples[i][0], samples[i][1]);
        CHECK_INT(assignments_add(object, 3, several), STATUS_OK);
        CHECK_INT(assignments_add(object, 3, again), STATUS_OK);
        text = cJSON_PrintUnformatted(object);
        CHECK_STR(text, "{\"recovery\":{\"trigger\":\"manual\",\"onCrash\":\"queue\"},\"size\":{\"x\":3},"
                        "\"sizes\":1}");
        cJSON_free(text);
        CHECK_INT(assignments_add(object, 2, twice), STATUS_USAGE);
        CHECK_INT(assignments_add(object, 2, labels), STATUS_USAGE);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                char *argument[] = {strdup(bad[i])};

                CHECK_INT(assignments_add(object, 1, argument), STATUS_USAGE);
                free(argument[0]);
        }
        cJSON_Delete(object);
        for (size_t i = 0; i < ARRAY_SIZE(several); i++) {
                free(several[i]);
                free(again[i]);
        }
        return check_report();
}
