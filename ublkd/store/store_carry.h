/* SPDX-License-Identifier: MIT */
/* What a record keeps of its backing stores where its spec changes: see record_stores_carry(). */
#pragma once

#include "ublkd/store/device_record.h"

/* Make the list for a record with `spec`; *ret: NULL if there is none. Return 0 or -ENOMEM. */
int store_carry_list(
        const struct device_record *record, const struct device_spec *spec, struct record_stores **ret);
/* Set the only store of a record whose spec names another store, or another part of it, from now on. */
void store_carry_single(
        const struct device_record *record, const struct device_spec *spec, struct device_record *changed);
