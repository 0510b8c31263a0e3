/* SPDX-License-Identifier: MIT */
/* PURE: what is to be done about a device, by a look at the files and at its record. */
#pragma once

#include "ublkd/declared/declared_plan.h"
#include "ublkd/declared/declared_set.h"
#include "ublkd/store/device_record.h"

/* Return why it is unknown whether the device still has a file, one sentence; NULL: it has none. Any bad file may be the one
 * that describes it now. */
const char *declared_look_unknown(const struct declared_set *set, const struct device_record *record);
/* Return the step. declaration: of the set, or a copy of it; NULL: no file describes the device. record: NULL: there is no
 * such device. */
enum declared_step declared_look(const struct declared_set *set, const struct declaration *declaration,
        const struct device_record *record);
