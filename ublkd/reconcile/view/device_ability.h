/* SPDX-License-Identifier: MIT */
/* PURE: what a spec needs of the kernel's disk, and whether this build and a kernel with certain features can
 * give it. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/model/device_spec.h"

/* What the spec wants to happen to a disk's I/O while no worker serves it. */
enum kernel_recovery spec_wanted_recovery(const struct device_spec *spec);
/* The driver's flags that the disk must have. */
uint64_t spec_wanted_flags(const struct device_spec *spec);
/* A sentence, for REASON_NOT_SUPPORTED, when the target, or a driver with these features, cannot do what the spec
 * asks for; NULL when it can. */
const char *spec_unsupported(const struct device_spec *spec, uint64_t features);
