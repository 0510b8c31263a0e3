/* SPDX-License-Identifier: MIT */
/* The features that a spec needs of target and driver, and whether they have them. */
#include "ublkd/reconcile/view/spec_features.h"

#include "ublkd/kernel/data_path.h"
#include "ublkd/kernel/kernel_feature.h"

enum kernel_recovery spec_wanted_recovery(const struct device_spec *spec)
{
        static const enum kernel_recovery by_on_crash[_ON_CRASH_MAX] = {
                [ON_CRASH_REISSUE] = KERNEL_RECOVERY_REISSUE,
                [ON_CRASH_QUEUE] = KERNEL_RECOVERY_QUEUE,
                [ON_CRASH_FAIL] = KERNEL_RECOVERY_FAIL,
                [ON_CRASH_NONE] = KERNEL_RECOVERY_NONE,
        };

        return by_on_crash[device_spec_on_crash(spec)];
}

uint64_t spec_wanted_flags(const struct device_spec *spec)
{
        return ublk_ctl_flags(spec_wanted_recovery(spec))
               | ublk_ctl_path_flags((enum data_path)spec->options.data_path)
               | (spec_is_unprivileged(spec) ? ublk_ctl_unprivileged_flag() : 0);
}

bool spec_is_unprivileged(const struct device_spec *spec)
{
        return spec->options.isolation == ISOLATION_KERNEL;
}

uint64_t spec_features(const struct device_spec *spec, uint64_t features)
{
        return spec_is_unprivileged(spec) ? ublk_ctl_unprivileged_features(features) : features;
}

static const char *path_unsupported(const struct device_spec *spec, uint64_t features)
{
        enum data_path path = (enum data_path)spec->options.data_path;

        if (path == DATA_PATH_ZERO_COPY && !(device_spec_flags(spec) & TARGET_REGISTERED_BUFFERS))
                return "This target does not support dataPath \"zero-copy\", because it must see the bytes "
                       "('ublkctl targets', or GET /targets, lists the paths of each target); set dataPath "
                       "to \"auto\".";
        if (ublk_ctl_missing(ublk_ctl_path_flags(path), features))
                return "This kernel does not support the dataPath of the spec ('ublkctl host', or GET /host, "
                       "lists its features: user-copy needs USER_COPY, zero-copy needs SUPPORT_ZERO_COPY); "
                       "set dataPath to \"auto\", or use a newer kernel.";
        return NULL;
}

const char *spec_unsupported(const struct device_spec *spec, uint64_t features)
{
        const char *sentence = path_unsupported(spec, features);

        if (sentence)
                return sentence;
        /* ublk_timeout() of 6.12 does not look at these disks for a worker that died with all tags in flight, and there is no
         * release hook: the requests would wait for ever, and so would STOP_DEV. */
        if (spec_is_unprivileged(spec) && kernel_cancels_late(features))
                return "This kernel does not end the requests of a dead worker in the unprivileged mode of "
                       "the driver; leave isolation out, or use Linux 6.16 or later.";
        if (ublk_ctl_missing(spec_wanted_flags(spec), features))
                return "This kernel does not support the recovery.onCrash of the spec ('ublkctl host', or "
                       "GET /host, lists its features); choose another recovery.onCrash, or a newer kernel.";
        return NULL;
}

const char *spec_not_allowed(const struct device_spec *spec, bool allows_tests)
{
        if (allows_tests || target_tree_for_tests(spec->tree) < 0)
                return NULL;
        return "The target is for tests, and this ublkd creates no disk with it (AllowFaultTarget=no, "
               "--allow-fault-target); give the device another target, or remove it.";
}
