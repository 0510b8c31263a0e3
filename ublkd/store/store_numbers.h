/* SPDX-License-Identifier: MIT */
/* Finds the owners of kernel numbers, and free numbers. For the store only. */
#pragma once

#include "ublkd/store/store_entries.h"

/* Return the record other than `name` that has `number` or asks for it, or NULL. */
const struct device_record *store_numbers_owner(
        const struct store_entries *entries, int number, const char *name);

/* Find the lowest number from `from` on that no record other than `name` has or asks for. Return 0, or -ENOSPC:
 * none is free up to DEVICE_NUMBER_MAX. */
int store_numbers_free(const struct store_entries *entries, int from, const char *name, int *ret);
