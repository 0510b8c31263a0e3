/* SPDX-License-Identifier: MIT */
/* space_condition: a store without room is reported, with what becomes of its writes; and one with little room before
 * that. */
#include "ublkd/reconcile/view/space_condition.h"

#include "tests/unit/check.h"

#include <stdlib.h>

int main(void)
{
        static const struct {
                struct space_facts facts;
                enum condition_reason reason;
                const char *words; /* NULL: no message */
        } rows[] = {
                {{},                                                              REASON_NONE,       NULL                 },
                {{.waits = true},                                                 REASON_NONE,       NULL                 },
                {{.full_since = 1},                                               REASON_STORE_FULL, "onFull is \"error\""},
                {{.full_since = 1, .waits = true},                                REASON_STORE_FULL, "onFull is \"wait\"" },
                {{.full_since = 1, .room.low = true},                             REASON_STORE_FULL, "onFull is \"error\""},
                {{.room = {true, true, UINT64_C(5) << 30, UINT64_C(7) << 20, 9}}, REASON_STORE_LOW,
                 "had 7 MiB left"                                                                                         },
                {{.room = {true, true, UINT64_C(5) << 30, UINT64_C(7) << 20, 9}}, REASON_STORE_LOW,
                 "need 5120 MiB"                                                                                          },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct device_condition condition = {};

                CHECK_INT(space_condition(&rows[i].facts, &condition), 0);
                CHECK_INT(condition.status, rows[i].words ? CONDITION_FALSE : CONDITION_ABSENT);
                CHECK_INT(condition.reason, rows[i].reason);
                CHECK_INT(condition.observed_at, rows[i].reason == REASON_STORE_LOW ? 9 : 0);
                CHECK(!rows[i].words == !condition.message);
                CHECK(!rows[i].words || strstr(condition.message, rows[i].words));
                free(condition.message);
        }
        return check_report();
}
