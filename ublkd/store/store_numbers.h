/* SPDX-License-Identifier: MIT */
/* Which kernel numbers the records of the store have. For the store only. */
#pragma once

#include "ublkd/store/store_entries.h"

/* The record other than `name` that has `number` or asks for it, or NULL. */
const struct device_record *store_numbers_owner(
        const struct store_entries *entries, int number, const char *name);

/* The lowest number from `from` on that no other record than `name` has or asks for. 0, or -ENOSPC: there is
 * none up to DEVICE_NUMBER_MAX. */
int store_numbers_free(const struct store_entries *entries, int from, const char *name, int *ret);
