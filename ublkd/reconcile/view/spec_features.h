/* SPDX-License-Identifier: MIT */
/* PURE: the features that a spec needs of target and driver, and whether they have them. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/model/device_spec.h"

/* Return what happens to the I/O of the disk while no worker serves it, as the spec wants it. */
enum kernel_recovery spec_wanted_recovery(const struct device_spec *spec);
/* Return the driver's flags that the disk must have. */
uint64_t spec_wanted_flags(const struct device_spec *spec);
/* Return whether the driver is to make the disk in its unprivileged mode. */
bool spec_is_unprivileged(const struct device_spec *spec);
/* Return those of the driver's `features` that the disk may have. */
uint64_t spec_features(const struct device_spec *spec, uint64_t features);
/* Return a sentence, for REASON_NOT_SUPPORTED, if the target or a driver with these features does not support the
 * spec; else NULL. Static. */
const char *spec_unsupported(const struct device_spec *spec, uint64_t features);
/* Return a sentence, for REASON_TEST_TARGET_NOT_ALLOWED, if the spec has a target for tests and this ublkd allows none; else
 * NULL. Static. */
const char *spec_not_allowed(const struct device_spec *spec, bool allows_tests);
