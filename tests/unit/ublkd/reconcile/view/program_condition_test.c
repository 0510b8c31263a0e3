/* SPDX-License-Identifier: MIT */
/* program_condition: a worker needs a restart exactly if both versions are known and differ. */
#include "ublkd/reconcile/view/program_condition.h"

#include "tests/unit/check.h"
#include "tests/unit/spec_of.h"

#include <stdlib.h>
#include <string.h>

static struct device_spec *new_spec(const char *on_crash)
{
        char text[256];

        snprintf(text, sizeof(text),
                "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\",\"recovery\":{"
                "\"onCrash\":\"%s\"}}",
                on_crash);
        return spec_of(text);
}

static void only_a_known_difference_counts(void)
{
        static const struct {
                const char *worker, *program;
                enum condition_status wanted;
        } cases[] = {
                {"1.0",       "1.0",       CONDITION_ABSENT},
                {"1.0",       "1.1",       CONDITION_TRUE  }, /* after an upgrade */
                {"1.1",       "1.0",       CONDITION_TRUE  }, /* after a downgrade */
                {"1.0~dev.1", "1.0~dev.2", CONDITION_TRUE  },
                {"",          "1.0",       CONDITION_ABSENT}, /* no HELLO so far */
                {"1.0",       "",          CONDITION_ABSENT},
                {"",          "",          CONDITION_ABSENT},
        };
        struct device_record record = {.name = (char *)"data", .spec = new_spec("reissue")};

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct device_condition now = {};

                CHECK_INT(program_condition(&record, cases[i].worker, cases[i].program, 0, &now), 0);
                if (!CHECK_INT(now.status, cases[i].wanted))
                        fprintf(stderr, "in case %zu\n", i);
                CHECK_INT(now.reason, now.status == CONDITION_TRUE ? REASON_OTHER_VERSION : REASON_NONE);
                free(now.message);
        }
        device_spec_free(record.spec);
}

static void the_message_names_what_a_restart_costs(void)
{
        static const char *const policies[] = {"reissue", "queue", "fail", "none"};

        for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
                struct device_record record = {.name = (char *)"data", .spec = new_spec(policies[i])};
                struct device_condition now = {};

                CHECK_INT(program_condition(&record, "1.0", "1.1", 0, &now), 0);
                CHECK(strstr(now.message, "1.0") && strstr(now.message, "1.1"));
                CHECK((strstr(now.message, "recovery.onCrash") == NULL) == (i == 0));
                free(now.message);
                device_spec_free(record.spec);
        }
}

static void what_is_being_removed_needs_none(void)
{
        struct device_record record = {.name = (char *)"data", .spec = new_spec("reissue"), .deleting = true};
        struct device_condition now = {};

        CHECK_INT(program_condition(&record, "1.0", "1.1", 0, &now), 0);
        CHECK_INT(now.status, CONDITION_ABSENT);
        device_spec_free(record.spec);
        record = (struct device_record){.name = (char *)"data"}; /* quarantined */
        CHECK_INT(program_condition(&record, "1.0", "1.1", 0, &now), 0);
        CHECK_INT(now.status, CONDITION_ABSENT);
}

int main(void)
{
        only_a_known_difference_counts();
        the_message_names_what_a_restart_costs();
        what_is_being_removed_needs_none();
        return check_report();
}
