/* SPDX-License-Identifier: MIT */
/* A backing store that a worker has refused to serve. */
#pragma once

#include "ublkd/workers/worker_store.h"

struct managed_device;

/* Return the store of the worker that its first problem is about; NULL: unknown. */
const struct worker_store *store_refusal_place(const struct managed_device *device);
/* Handle a worker that has refused a store or died. Return true: try again at once, and report nothing. */
bool store_refusal_take(struct managed_device *device);
