/* SPDX-License-Identifier: MIT */
/* What the openers of a disk would notice of a restart. Pure. */
#pragma once

#include "ublkd/store/device_record.h"

/* Return why openers of the disk would notice that its worker is replaced, a clause; NULL: they would not. features: of
 * the driver. The record has a spec. */
const char *restart_harm(const struct device_record *record, uint64_t features);
