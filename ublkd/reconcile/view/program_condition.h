/* SPDX-License-Identifier: MIT */
/* PURE: whether the worker of a device runs the program that ublkd would start now. */
#pragma once

#include "ublkd/store/device_record.h"

/* Write CONDITION_NEEDS_RESTART, or leave *ret untouched if the worker runs it, or if that is not known. worker: the version
 * that it has sent; "": none so far. program: the version of what ublkd starts; "": unknown. features: of the
 * driver. Return 0 or -ENOMEM. */
int program_condition(const struct device_record *record, const char *worker, const char *program,
        uint64_t features, struct device_condition *ret);
