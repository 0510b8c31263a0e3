/* SPDX-License-Identifier: MIT */
/* What the workers of a device report: reasons and notices. A worker under an attacker's control may send any, and exit, and
 * have the next one send others. So what ublkd keeps of them is limited for the device, not for each worker. */
#pragma once

#include "ublkd/model/reason.h"
#include "ublkd/reconcile/parts/device_words_part.h"

/* Return the reason of a name that a worker of the device has sent; REASON_OTHER for one that is unknown here, beyond a few. */
enum condition_reason device_words_reason(struct device_words *words, const char *name);
/* Return whether to report a notice: not if the workers of the device have sent too many. The worker has logged it, too. */
bool device_words_takes_notice(struct device_words *words, uint64_t now);
