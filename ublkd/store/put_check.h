/* SPDX-License-Identifier: MIT */
/* What must hold for a put. For the store only. */
#pragma once

#include "ublkd/store/device_store.h"

/* `record`: the device of that name, or NULL. 0, or -errno as device_store_put() with a problem that says
 * why. */
int put_check(const struct device_store *store, const struct device_spec *spec,
        const struct device_record *record, const struct put_condition *condition,
        struct problem_list *problems);
