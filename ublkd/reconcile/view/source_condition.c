/* SPDX-License-Identifier: MIT */
/* Reports whether the file that owns a device is applied to it. */
#include "ublkd/reconcile/view/source_condition.h"

#include <assert.h>

static const enum condition_reason reasons[] = {
        [SOURCE_APPLIED] = REASON_OWNED_BY_FILE,
        [SOURCE_INVALID] = REASON_FILE_INVALID,
        [SOURCE_REFUSED] = REASON_FILE_REFUSED,
        [SOURCE_GONE] = REASON_FILE_GONE,
};
static_assert(ARRAY_SIZE(reasons) == _SOURCE_STATE_MAX, "every state has its reason");

int source_condition(const struct device_record *record, struct device_condition *ret)
{
        enum source_state state = record->source_state;

        if (!record->source)
                return 0;
        if (state == SOURCE_APPLIED || !record->source_trouble)
                return device_condition_set(ret, CONDITION_TRUE, REASON_OWNED_BY_FILE,
                        "The file %s describes the device; the API does not change it.", record->source);
        return device_condition_set(ret, CONDITION_FALSE, reasons[state], "%s", record->source_trouble);
}
