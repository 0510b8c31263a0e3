/* SPDX-License-Identifier: MIT */
/* progress_condition: what is shown of a disk none of whose requests ends. */
#include "ublkd/reconcile/view/progress_condition.h"

#include "tests/unit/check.h"

#include <stdlib.h>

int main(void)
{
        static const enum condition_reason reasons[_PROGRESS_MAX] = {
                [PROGRESS_SLOW] = REASON_BACKING_SLOW,
                [PROGRESS_STARVED] = REASON_WORKER_STARVED,
                [PROGRESS_STOPPED] = REASON_WORKER_HUNG,
                [PROGRESS_SPINS] = REASON_WORKER_HUNG,
                [PROGRESS_LOST] = REASON_WORKER_HUNG,
        };

        for (int i = 0; i < _PROGRESS_MAX; i++) {
                struct device_condition condition = {};
                bool shown = reasons[i] != REASON_NONE;

                CHECK_INT(progress_condition((enum progress)i, 77, &condition), 0);
                CHECK_INT(progress_reason((enum progress)i), reasons[i]);
                CHECK_INT(condition.reason, reasons[i]);
                CHECK_INT(condition.status, shown ? CONDITION_FALSE : CONDITION_ABSENT);
                CHECK_INT(condition.transition_at, shown ? 77 : 0);
                CHECK(shown == !!condition.message);
                free(condition.message);
        }
        return check_report();
}
