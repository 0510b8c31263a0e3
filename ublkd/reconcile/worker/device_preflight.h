/* SPDX-License-Identifier: MIT */
/* The preflight of a restart: whether the next worker could take over, before the one that serves leaves. */
#pragma once

#include "ublkd/model/reason.h"
#include "ublkd/reconcile/parts/device_preflight_part.h"

#include <stdbool.h>

struct device_record;
struct managed_device;

/* Try whether the next worker could take over, unless that is known. Then call `then` once, possibly before
 * this returns: 0; -ECANCELED: it could not, and the restart is refused and reported; -ECONNRESET: given
 * up. */
void device_preflight_begin(struct managed_device *device, const struct device_record *record,
        void (*then)(struct managed_device *device, int result));
/* Return whether the end of the worker would fail writes that wait for room (onFull "wait"), and have no answer yet:
 * the openers must not see an error. */
bool device_preflight_fails_writes(const struct managed_device *device, const struct device_record *record);
/* End the preflight: the serving worker has died, so the result does not matter. */
void device_preflight_give_up(struct managed_device *device);
/* Return why the restart that was asked for last was refused, and the reason of that sentence; NULL: it was not. Valid until
 * the next one. ret_reason: NULL: not wanted. */
const char *device_preflight_refusal(const struct managed_device *device, const struct device_record *record,
        enum condition_reason *ret_reason);
/* Free what the preflight owns. */
void device_preflight_drop(struct managed_device *device);
