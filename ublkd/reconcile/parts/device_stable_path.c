/* SPDX-License-Identifier: MIT */
/* Warns of a path that may lead to another disk after the next boot. Only the worker can see that: it opens
 * the store. */
#include "ublkd/reconcile/parts/device_stable_path.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include "ublkd/base/sentence.h"
#include "ublkd/store/device_record.h"

/* What an earlier worker of the same disk said is still so: the next one may follow no path at all. */
static int keep(
        const struct managed_device *device, const struct device_record *record, struct device_condition *ret)
{
        const struct device_condition *before = &record->status.conditions.of[CONDITION_STABLE_PATH];

        if (before->status == CONDITION_ABSENT || device->view.facts.kernel == KERNEL_ABSENT)
                return 0;
        return device_condition_set(ret, before->status, REASON_UNSTABLE_PATH, "%s", before->message);
}

static int warn(
        const struct device_record *record, const struct disk_params *params, struct device_condition *ret)
{
        const cJSON *target = cJSON_GetObjectItemCaseSensitive(record->spec->document, "target");
        const char *path = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(target, "path"));

        path = path ? path : "The path";
        if (params->stable_path)
                return device_condition_set(ret, CONDITION_FALSE, REASON_UNSTABLE_PATH,
                        "%s may be another disk after a reboot: the kernel gives such names out in the order "
                        "in "
                        "which it finds disks. %s is this disk, and stays so: when nobody uses the device, "
                        "give "
                        "that as target.path.",
                        path, params->stable_path);
        return device_condition_set(ret, CONDITION_FALSE, REASON_UNSTABLE_PATH,
                "%s may be another disk after a reboot: the kernel gives such names out in the order in "
                "which it "
                "finds disks. No name in /dev/disk/by-id, /dev/disk/by-partuuid, /dev/mapper or /dev/md "
                "stands "
                "for this one.",
                path);
}

int device_stable_path(
        const struct managed_device *device, const struct device_record *record, struct device_condition *ret)
{
        const struct disk_params *params =
                device->process.worker ? worker_proc_params(device->process.worker) : NULL;

        if (!record->spec || !record->spec->options.enabled || record->deleting)
                return 0;
        return params && params->path_may_change ? warn(record, params, ret) : keep(device, record, ret);
}

void device_stable_path_tell(const struct managed_device *device, const struct device_condition *before,
        const struct device_condition *now)
{
        if (now->status == CONDITION_FALSE && !sentence_equal(before->message, now->message))
                device_tell(device, EVENT_WARNING, REASON_UNSTABLE_PATH, "%s", now->message);
}
