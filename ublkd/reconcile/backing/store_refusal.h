/* SPDX-License-Identifier: MIT */
/* A backing store that a worker has refused to serve. */
#pragma once

#include "ublkd/workers/worker_store.h"

struct device_record;
struct managed_device;

/* Return the store of the worker that its first problem is about; NULL: unknown. */
const struct worker_store *store_refusal_place(const struct managed_device *device);
/* Note which store of a list the worker has refused, as it knows neither the pointer nor the command that accepts another store.
 * Return false: it refused none of a list for being another one, and there is no note. */
bool store_refusal_explain(struct managed_device *device, const struct device_record *record);
/* Handle a worker that has refused a store or died. served: it has served the disk before, and refuses nothing. Return true: try
 * again at once, and report nothing. */
bool store_refusal_take(struct managed_device *device, bool served);
