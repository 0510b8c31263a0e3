/* SPDX-License-Identifier: MIT */
/* command_failure: the reason of each failure, and that its sentence is one. */
#include "ublkd/reconcile/view/command_failure.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <string.h>

static const struct {
        enum plan_action action;
        int error;
        enum condition_reason reason;
} rows[] = {
        {ACTION_ADD_DEV,        -EEXIST,      REASON_NUMBER_TAKEN       },
        {ACTION_ADD_DEV,        -EINPROGRESS, REASON_NUMBER_TAKEN       },
        {ACTION_ADD_DEV,        -EINVAL,      REASON_CONTROL_PLANE      },
        {ACTION_ADD_DEV,        -EACCES,      REASON_CONTROL_PLANE      },
        {ACTION_ADD_DEV,        -ETIMEDOUT,   REASON_CONTROL_PLANE_HANGS},
        {ACTION_START_DEV,      -EEXIST,      REASON_CONTROL_PLANE      },
        {ACTION_BEGIN_RECOVERY, -EBUSY,       REASON_REQUESTS_UNDER_WAY },
        {ACTION_BEGIN_RECOVERY, -EINVAL,      REASON_CONTROL_PLANE      },
        {ACTION_BEGIN_RECOVERY, -ESTALE,      REASON_NUMBER_TAKEN       },
        {ACTION_END_RECOVERY,   -ESTALE,      REASON_NUMBER_TAKEN       },
        {ACTION_DEL_DEV,        -EBUSY,       REASON_CONTROL_PLANE      },
        {ACTION_STOP_DEV,       -ETIMEDOUT,   REASON_CONTROL_PLANE_HANGS},
        {ACTION_GROW_DISK,      -EIO,         REASON_CONTROL_PLANE      },
};

int main(void)
{
        char sentence[COMMAND_FAILURE_MAX];

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                CHECK_INT(command_failure(rows[i].action, rows[i].error, 123456, sentence), rows[i].reason);
                CHECK(strstr(sentence, "123456"));
                CHECK(strlen(sentence) < COMMAND_FAILURE_MAX - 1); /* it is not cut */
                CHECK_INT(sentence[strlen(sentence) - 1], '.');
        }
        return check_report();
}
