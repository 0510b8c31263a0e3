/* SPDX-License-Identifier: MIT */
/* PURE: reports swap on a disk whose data path needs memory for each page that is written. */
#pragma once

#include "ublkd/kernel/data_path.h"
#include "ublkd/model/device_condition.h"

#include <stdbool.h>

/* Write CONDITION_SWAP_SAFE, or leave *ret untouched if there is nothing to report. holds_swap: /dev/ublkbN is a swap area,
 * has one in a partition, or is below one. path: of the disk. Return 0 or -ENOMEM. */
int swap_condition(int number, bool holds_swap, enum data_path path, struct device_condition *ret);
