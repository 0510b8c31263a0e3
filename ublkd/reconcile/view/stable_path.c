/* SPDX-License-Identifier: MIT */
/* The condition of a path that may lead to another disk after the next boot. Only the worker can see that: it
 * opens the store. */
#include "ublkd/reconcile/view/stable_path.h"

#include "ublkd/model/device_spec.h"
#include "ublkd/model/device_spec_store.h"

/* Keep the report of an earlier worker of the same disk: the next worker may open the store without the
 * path. */
static int keep(const struct device_record *record, enum plan_kernel kernel, struct device_condition *ret)
{
        const struct device_condition *before = &record->status.conditions.of[CONDITION_STABLE_PATH];

        if (before->status == CONDITION_ABSENT || kernel == KERNEL_ABSENT)
                return 0;
        return device_condition_set(ret, before->status, REASON_UNSTABLE_PATH, "%s", before->message);
}

static int warn(
        const struct device_record *record, const struct disk_params *params, struct device_condition *ret)
{
        const char *path = device_spec_path(record->spec);

        if (device_spec_has_list(record->spec)) /* which of them is unknown here */
                return device_condition_set(ret, CONDITION_FALSE, REASON_UNSTABLE_PATH,
                        "A path in the target may be another disk after a reboot: the kernel assigns such "
                        "names in the order in which it finds disks. Use names in /dev/disk/by-id, "
                        "/dev/disk/by-partuuid, /dev/mapper or /dev/md, and set them when the device has no "
                        "openers.");
        path = path ? path : "The path";
        if (params->stable_path)
                return device_condition_set(ret, CONDITION_FALSE, REASON_UNSTABLE_PATH,
                        "%s may be another disk after a reboot: the kernel assigns such names in the order "
                        "in which it finds disks. %s always leads to this disk: set target.path to it when "
                        "the device has no openers.",
                        path, params->stable_path);
        return device_condition_set(ret, CONDITION_FALSE, REASON_UNSTABLE_PATH,
                "%s may be another disk after a reboot: the kernel assigns such names in the order in which "
                "it finds disks. This disk has no name in /dev/disk/by-id, /dev/disk/by-partuuid, "
                "/dev/mapper or /dev/md.",
                path);
}

int stable_path_condition(const struct device_record *record, const struct disk_params *params,
        enum plan_kernel kernel, struct device_condition *ret)
{
        if (!device_record_enabled(record) || record->deleting)
                return 0;
        return params && params->path_may_change ? warn(record, params, ret) : keep(record, kernel, ret);
}
