/* SPDX-License-Identifier: MIT */
/* What the openers of a disk would notice of a restart. */
#include "ublkd/store/restart_harm.h"

#include "ublkd/kernel/kernel_feature.h"

#include <stddef.h>

const char *restart_harm(const struct device_record *record, uint64_t features)
{
        switch (device_spec_on_crash(record->spec)) {
        case ON_CRASH_NONE:
                return "A restart recreates the disk (recovery.onCrash is \"none\")";
        case ON_CRASH_FAIL:
                return "A restart fails all I/O meanwhile (recovery.onCrash is \"fail\")";
        case ON_CRASH_QUEUE:
                return kernel_quiesces(record->status.kernel_flags, features)
                               ? NULL
                               : "A restart fails the I/O in flight (recovery.onCrash is \"queue\", and "
                                 "this kernel has no QUIESCE_DEV, or one that can crash it; Linux 7.3 has a "
                                 "safe one)";
        default:
                return NULL;
        }
}
