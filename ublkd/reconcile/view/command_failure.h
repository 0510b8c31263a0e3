/* SPDX-License-Identifier: MIT */
/* PURE: reason and sentence of a failed control command. */
#pragma once

#include "ublkd/model/reason.h"
#include "ublkd/plan/plan.h"

enum { COMMAND_FAILURE_MAX = 256 };

/* Return the reason of a failed `action`, and write its sentence into `ret`. error: -errno. Not for a removal that
 * the kernel refuses because the disk is in use: see device_openers.h. */
enum condition_reason command_failure(
        enum plan_action action, int error, int number, char ret[static COMMAND_FAILURE_MAX]);
