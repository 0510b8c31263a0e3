/* SPDX-License-Identifier: MIT */
/* What the death of a device's worker costs. */
#include "ublkd/reconcile/worker/device_price.h"
#include "ublkd/reconcile/worker/device_preflight.h"

struct progress_price device_price_of_death(
        const struct managed_device *device, const struct device_record *record)
{
        return (struct progress_price){
                .automatic = record->spec->options.recovery.trigger == TRIGGER_AUTO,
                .replayed = device_spec_on_crash(record->spec) == ON_CRASH_REISSUE,
                .disk_goes = device_spec_on_crash(record->spec) == ON_CRASH_NONE,
                .fails_writes = device_preflight_fails_writes(device, record),
        };
}
