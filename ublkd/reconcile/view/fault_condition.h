/* SPDX-License-Identifier: MIT */
/* PURE: reports the faults of a backing store that lose acknowledged data. */
#pragma once

#include "ublkd/model/device_condition.h"
#include "ublkd/model/device_status.h"
#include "ublkd/model/reason.h"
#include "ublkd/proto/region_faults.h"

/* Return the reason of a fault. */
enum condition_reason fault_reason(enum region_fault fault);
/* Write the sentence of a fault, which the caller frees. Return 0 or -ENOMEM. */
int fault_explain(enum region_fault fault, const struct fault_report *report, char **ret);
/* Return the numbers and times of the faults in force. */
void fault_numbers(const struct fault_report reports[static _REGION_FAULT_MAX], struct device_faults *ret);
/* Write the condition of `fault` for the device `name`, or leave *ret untouched if there is no such fault. Return 0 or
 * -ENOMEM. */
int fault_condition(const struct fault_report reports[static _REGION_FAULT_MAX], enum region_fault fault,
        const char *name, struct device_condition *ret);
