/* SPDX-License-Identifier: MIT */
/* spec_features: the features that specs need of a kernel, and the sentence about a kernel without them. */
#include "ublkd/reconcile/view/spec_features.h"

#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>

static const struct row {
        const char *target, *more; /* of the spec */
        enum kernel_recovery recovery;
        enum data_path missing; /* whose flags the kernel does not have; AUTO: it has all */
        bool without_recovery;
        const char *words; /* of the sentence; NULL: none */
} rows[] = {
        {"\"type\":\"null\"",                 "",                                      KERNEL_RECOVERY_REISSUE, DATA_PATH_AUTO,      false, NULL               },
        {"\"type\":\"null\"",                 "",                                      KERNEL_RECOVERY_REISSUE, DATA_PATH_ZERO_COPY, false, NULL               },
        {"\"type\":\"null\"",                 "",                                      KERNEL_RECOVERY_REISSUE, DATA_PATH_AUTO,      true,  "recovery.onCrash" },
        {"\"type\":\"null\"",                 ",\"recovery\":{\"onCrash\":\"none\"}",  KERNEL_RECOVERY_NONE,    DATA_PATH_AUTO,
         true,                                                                                                                              NULL               },
        {"\"type\":\"null\"",                 ",\"recovery\":{\"onCrash\":\"queue\"}", KERNEL_RECOVERY_QUEUE,   DATA_PATH_AUTO,
         true,                                                                                                                              "recovery.onCrash" },
        {"\"type\":\"null\"",                 ",\"dataPath\":\"zero-copy\"",           KERNEL_RECOVERY_REISSUE, DATA_PATH_AUTO,      false,
         "must see the bytes"                                                                                                                                  },
        {"\"type\":\"loop\",\"path\":\"/x\"", ",\"dataPath\":\"zero-copy\"",           KERNEL_RECOVERY_REISSUE,
         DATA_PATH_AUTO,                                                                                                             false, NULL               },
        {"\"type\":\"loop\",\"path\":\"/x\"", ",\"dataPath\":\"zero-copy\"",           KERNEL_RECOVERY_REISSUE,
         DATA_PATH_ZERO_COPY,                                                                                                        false, "SUPPORT_ZERO_COPY"},
        {"\"type\":\"null\"",                 ",\"dataPath\":\"user-copy\"",           KERNEL_RECOVERY_REISSUE, DATA_PATH_USER_COPY,
         false,                                                                                                                             "needs USER_COPY"  },
};

static void check_row(const struct row *row)
{
        uint64_t features = UINT64_MAX & ~ublk_ctl_path_flags(row->missing);
        struct problem_list problems = {};
        struct device_spec *spec = NULL;
        const char *sentence;
        char text[256];
        cJSON *document;

        if (row->without_recovery)
                features &=
                        ~(ublk_ctl_flags(KERNEL_RECOVERY_REISSUE) & ~ublk_ctl_flags(KERNEL_RECOVERY_NONE));
        snprintf(text, sizeof(text), "{\"name\":\"data\",\"size\":\"1MiB\",\"target\":{%s}%s}", row->target,
                row->more);
        document = cJSON_Parse(text);
        if (CHECK_INT(device_spec_parse(document, NULL, &spec, &problems), 0)) {
                sentence = spec_unsupported(spec, features);
                CHECK_INT(spec_wanted_recovery(spec), row->recovery);
                CHECK(!row->words == !sentence && (!sentence || strstr(sentence, row->words)));
                CHECK(sentence || !ublk_ctl_missing(spec_wanted_flags(spec), features));
        }
        device_spec_free(spec);
        cJSON_Delete(document);
        problem_list_clear(&problems);
}

/* A driver without a release hook never ends the requests of a dead worker there. */
static void check_unprivileged(void)
{
        static const uint64_t quiesce = 1 << 12; /* UBLK_F_QUIESCE; see kernel_cancels_late() */
        struct problem_list problems = {};
        struct device_spec *spec = NULL;
        cJSON *document = cJSON_Parse("{\"name\":\"data\",\"size\":\"1MiB\",\"target\":{\"type\":\"null\"},"
                                      "\"isolation\":\"kernel\","
                                      "\"recovery\":{\"onCrash\":\"none\"},\"owner\":{\"gid\":1}}");

        if (CHECK_INT(device_spec_parse(document, NULL, &spec, &problems), 0)) {
                CHECK(!spec_unsupported(spec, UINT64_MAX));
                CHECK(spec_unsupported(spec, UINT64_MAX & ~quiesce) != NULL);
                CHECK(spec_wanted_flags(spec) & ublk_ctl_unprivileged_flag());
        }
        device_spec_free(spec);
        cJSON_Delete(document);
        problem_list_clear(&problems);
}

int main(void)
{
        check_unprivileged();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                unsigned before = check_failures;

                check_row(&rows[i]);
                if (check_failures > before)
                        fprintf(stderr, "row %zu: %s%s\n", i, rows[i].target, rows[i].more);
        }
        return check_report();
}
