/* SPDX-License-Identifier: MIT */
/* swap_condition: swap on a disk is reported unless its pages are written where they are. */
#include "ublkd/reconcile/view/swap_condition.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

static const struct {
        bool holds_swap;
        enum data_path path;
        enum condition_status status;
        enum condition_reason reason;
} rows[] = {
        {false, DATA_PATH_COPY,      CONDITION_ABSENT, REASON_NONE             },
        {false, DATA_PATH_USER_COPY, CONDITION_ABSENT, REASON_NONE             },
        {false, DATA_PATH_ZERO_COPY, CONDITION_ABSENT, REASON_NONE             },
        {true,  DATA_PATH_COPY,      CONDITION_FALSE,  REASON_SWAP_NEEDS_MEMORY},
        {true,  DATA_PATH_USER_COPY, CONDITION_FALSE,  REASON_SWAP_NEEDS_MEMORY},
        {true,  DATA_PATH_ZERO_COPY, CONDITION_ABSENT, REASON_NONE             },
};

int main(void)
{
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct device_condition condition = {};

                CHECK_INT(swap_condition(7, rows[i].holds_swap, rows[i].path, &condition), 0);
                CHECK_INT(condition.status, rows[i].status);
                CHECK_INT(condition.reason, rows[i].reason);
                CHECK((condition.status == CONDITION_ABSENT) == !condition.message);
                CHECK(!condition.message || strstr(condition.message, "/dev/ublkb7"));
                CHECK(!condition.message || strstr(condition.message, data_path_to_string(rows[i].path)));
                free(condition.message);
        }
        return check_report();
}
