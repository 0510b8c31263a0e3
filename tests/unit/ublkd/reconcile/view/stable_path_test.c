/* SPDX-License-Identifier: MIT */
/* stable_path: the warning of a path that may lead elsewhere lasts as long as the disk. */
#include "ublkd/reconcile/view/stable_path.h"

#include "tests/unit/check.h"
#include "tests/unit/spec_of.h"

#include <stdlib.h>

int main(void)
{
        struct device_record record = {
                .spec = spec_of("{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}")};
        const struct disk_params unstable = {
                .path_may_change = true, .stable_path = (char *)"/dev/disk/by-id/x"};
        const struct disk_params stable = {};
        struct device_condition *before = &record.status.conditions.of[CONDITION_STABLE_PATH];
        struct device_condition now = {};

        CHECK_INT(stable_path_condition(&record, &stable, KERNEL_LIVE, &now), 0);
        CHECK_INT(now.status, CONDITION_ABSENT);
        CHECK_INT(stable_path_condition(&record, &unstable, KERNEL_ABSENT, &now), 0);
        CHECK_INT(now.status, CONDITION_FALSE);
        CHECK_INT(now.reason, REASON_UNSTABLE_PATH);
        CHECK(strstr(now.message, "/dev/disk/by-id/x"));

        /* the next worker does not follow the path: the earlier report holds while the disk exists */
        *before = now;
        now = (struct device_condition){};
        CHECK_INT(stable_path_condition(&record, NULL, KERNEL_DOWN, &now), 0);
        CHECK_STR(now.message, before->message);
        free(now.message);
        now = (struct device_condition){};
        CHECK_INT(stable_path_condition(&record, &stable, KERNEL_ABSENT, &now), 0);
        CHECK_INT(now.status, CONDITION_ABSENT);

        record.deleting = true;
        CHECK_INT(stable_path_condition(&record, &unstable, KERNEL_LIVE, &now), 0);
        CHECK_INT(now.status, CONDITION_ABSENT);
        free(before->message);
        device_spec_free(record.spec);
        return check_report();
}
