/* SPDX-License-Identifier: MIT */
/* resources_condition: whether the limits of a spec are in force. */
#include "ublkd/reconcile/view/resources_condition.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <stdlib.h>

static const struct group_limits none, some = {.cpu_weight = 5};

static void check(const struct group_limits *wanted, const struct group_result *result,
        enum condition_status status, enum condition_reason reason)
{
        struct device_condition condition = {};

        CHECK_INT(resources_condition(wanted, result, &condition), 0);
        CHECK_INT(condition.status, status);
        CHECK_INT(condition.reason, reason);
        CHECK(!condition.message == (status == CONDITION_ABSENT));
        if (result && status != CONDITION_ABSENT)
                CHECK_INT(resources_reason(result), reason);
        free(condition.message);
}

int main(void)
{
        static const struct group_result good, leftover = {.leftover = -EIO};

        check(&none, NULL, CONDITION_ABSENT, REASON_NONE);
        check(&none, &good, CONDITION_ABSENT, REASON_NONE);
        check(&some, NULL, CONDITION_UNKNOWN, REASON_RESOURCES_PENDING);
        check(&some, &good, CONDITION_TRUE, REASON_RESOURCES_IN_FORCE);
        check(&some, &leftover, CONDITION_FALSE, REASON_RESOURCES_NOT_IN_FORCE);
        check(&none, &leftover, CONDITION_FALSE, REASON_RESOURCES_NOT_IN_FORCE);
        for (int i = GROUP_FINE + 1; i < _GROUP_TROUBLE_MAX; i++) {
                const struct group_result bad = {.trouble = (enum group_trouble)i, .error = -EIO};

                check(&some, &bad, CONDITION_FALSE, REASON_RESOURCES_NOT_IN_FORCE);
                check(&none, &bad, CONDITION_ABSENT, REASON_NONE);
        }
        for (int i = 0; i < _GROUP_LIMIT_MAX; i++) {
                struct group_result bad = {};

                bad.limits[i] = -ENOENT;
                check(&some, &bad, CONDITION_FALSE, REASON_RESOURCES_NOT_IN_FORCE);
                bad.limits[i] = -ENODEV;
                check(&some, &bad, CONDITION_FALSE, REASON_RESOURCES_NOT_IN_FORCE);
        }
        return check_report();
}
