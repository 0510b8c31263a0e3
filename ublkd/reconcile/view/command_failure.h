/* SPDX-License-Identifier: MIT */
/* PURE: what a control command that has failed means to the user. */
#pragma once

#include "ublkd/model/reason.h"
#include "ublkd/plan/plan.h"

enum { COMMAND_FAILURE_MAX = 256 };

/* `action` failed with -errno for the number N. Its reason, and its sentence in `ret`. Not for a removal that is
 * refused because the disk is in use: see device_holders.h. */
enum condition_reason command_failure(
        enum plan_action action, int error, int number, char ret[static COMMAND_FAILURE_MAX]);
