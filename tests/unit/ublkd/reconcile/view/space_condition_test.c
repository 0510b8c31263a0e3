/* SPDX-License-Identifier: MIT */
/* space_condition: a store without room is reported, with what becomes of its writes. */
#include "ublkd/reconcile/view/space_condition.h"

#include "tests/unit/check.h"

#include <stdlib.h>

int main(void)
{
        static const struct {
                uint64_t full_since;
                bool waits;
                enum condition_status status;
                const char *words; /* NULL: no message */
        } rows[] = {
                {0, false, CONDITION_ABSENT, NULL                 },
                {0, true,  CONDITION_ABSENT, NULL                 },
                {1, false, CONDITION_FALSE,  "onFull is \"error\""},
                {1, true,  CONDITION_FALSE,  "onFull is \"wait\"" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct device_condition condition = {};

                CHECK_INT(space_condition(rows[i].full_since, rows[i].waits, &condition), 0);
                CHECK_INT(condition.status, rows[i].status);
                CHECK_INT(condition.reason, rows[i].words ? REASON_STORE_FULL : REASON_NONE);
                CHECK(!rows[i].words == !condition.message);
                CHECK(!rows[i].words || strstr(condition.message, rows[i].words));
                free(condition.message);
        }
        return check_report();
}
