/* SPDX-License-Identifier: MIT */
/* What a spec needs of the kernel's disk, and whether this build and this kernel can give it. */
#include "ublkd/reconcile/managed_device.h"

enum kernel_recovery device_wanted_recovery(const struct device_record *record)
{
        static const enum kernel_recovery by_on_crash[_ON_CRASH_MAX] = {
                [ON_CRASH_REISSUE] = KERNEL_RECOVERY_REISSUE,
                [ON_CRASH_QUEUE] = KERNEL_RECOVERY_QUEUE,
                [ON_CRASH_FAIL] = KERNEL_RECOVERY_FAIL,
                [ON_CRASH_NONE] = KERNEL_RECOVERY_NONE,
        };

        return by_on_crash[device_spec_on_crash(record->spec)];
}

uint64_t device_wanted_flags(const struct device_record *record)
{
        return ublk_ctl_flags(device_wanted_recovery(record))
               | ublk_ctl_path_flags((enum data_path)record->spec->options.data_path);
}

static const char *path_unsupported(const struct device_record *record, uint64_t got)
{
        enum data_path path = (enum data_path)record->spec->options.data_path;

        if (path == DATA_PATH_ZERO_COPY && !(record->spec->target->flags & TARGET_REGISTERED_BUFFERS))
                return "This target cannot do dataPath \"zero-copy\", because it has to see the bytes "
                       "('ublkctl targets', or GET /targets, lists the paths of each); set dataPath to "
                       "\"auto\".";
        if (ublk_ctl_missing(ublk_ctl_path_flags(path), got))
                return "This kernel cannot do what dataPath asks for ('ublkctl host', or GET /host, lists "
                       "the features that it has: user-copy needs USER_COPY, zero-copy needs "
                       "SUPPORT_ZERO_COPY); set dataPath to \"auto\", or use a newer kernel.";
        return NULL;
}

const char *device_unsupported(const struct managed_device *device, const struct device_record *record)
{
        uint64_t got = device->reconciler->config.host->features & ~device->dropped_flags;
        const char *sentence = path_unsupported(record, got);

        if (sentence)
                return sentence;
        if (ublk_ctl_missing(device_wanted_flags(record), got))
                return "This kernel cannot do what recovery.onCrash asks for ('ublkctl host', or GET /host, "
                       "lists the features that it has); choose another recovery.onCrash, or a newer kernel.";
        return NULL;
}
