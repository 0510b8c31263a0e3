/* SPDX-License-Identifier: MIT */
/* The table of reasons. For reason.c, and for the generator of docs/reasons.md. */
#pragma once

#include "ublkd/model/reason.h"

/* Indexed by enum condition_reason; _REASON_MAX rows. */
extern const struct reason_info reason_table[];
