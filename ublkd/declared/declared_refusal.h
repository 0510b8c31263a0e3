/* SPDX-License-Identifier: MIT */
/* Which specs of files this ublkd refuses. */
#pragma once

#include "ublkd/declared/declared.h"
#include "ublkd/declared/declared_set.h"

/* Return why the pools, the rules for tenants, or the policy of ublkd for paths and targets, refuse the spec: the rest of a
 * sentence that has the name of the device, valid as long as the declaration; NULL: they do not. record: that of the device, or
 * NULL. */
const char *declared_refusal(const struct declared_config *config, const struct declaration *declaration,
        const struct device_record *record);
