/* SPDX-License-Identifier: MIT */
/* PURE: reports the requests of a disk that failed. */
#pragma once

#include "ublkd/model/device_condition.h"
#include "ublkd/model/io_errors.h"

enum { ERRORS_SHOWN_SECONDS = 24 * 60 * 60 }; /* after the last one */

/* Return the operation as the subject of a sentence ("A write"). Static. */
const char *error_subject(enum stats_op op);
/* Return the reason of a failed request of `op`. */
enum condition_reason error_reason(enum stats_op op);
/* Write the sentence of `count` failed requests of `op`, the last of which is `report`. The caller frees it. Return 0
 * or -ENOMEM. */
int error_explain(enum stats_op op, uint64_t count, const struct error_report *report, char **ret);
/* Write CONDITION_ERROR_FREE, or leave *ret untouched if no request failed in the last ERRORS_SHOWN_SECONDS. now:
 * CLOCK_REALTIME, microseconds. Return 0 or -ENOMEM. */
int error_condition(const struct io_errors *errors, uint64_t now, struct device_condition *ret);
/* Return when the condition ends without another error, CLOCK_REALTIME microseconds; 0: there is none. */
uint64_t error_condition_end(const struct io_errors *errors, uint64_t now);
