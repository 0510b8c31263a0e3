/* SPDX-License-Identifier: MIT */
/* Reports a backing store without room for writes. */
#include "ublkd/reconcile/view/space_condition.h"

int space_condition(uint64_t full_since, bool waits, struct device_condition *ret)
{
        if (full_since == 0)
                return 0;
        return device_condition_set(ret, CONDITION_FALSE, REASON_STORE_FULL,
                "The backing store had no room for a write; make room. %s",
                waits ? "Writes wait until there is room, since onFull is \"wait\"."
                      : "Writes that find no room fail, since onFull is \"error\". The next write shows "
                        "whether there is room: this condition stays until one has succeeded.");
}
