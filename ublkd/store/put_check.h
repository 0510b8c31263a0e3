/* SPDX-License-Identifier: MIT */
/* Checks a put against the other devices and the preconditions of the client. For the store only. */
#pragma once

#include "ublkd/store/device_record.h"

/* Check a put. record: the device of that name, or NULL. owner: the other device that has the number of the spec
 * or asks for it, or NULL. Return 0, or -errno as device_store_put() with one problem. */
int put_check(const struct device_spec *spec, const struct device_record *record,
        const struct device_record *owner, const struct put_condition *condition,
        struct problem_list *problems);
