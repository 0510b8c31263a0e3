/* SPDX-License-Identifier: MIT */
/* The rows of reasons. For reason.c, and for the page that is made of them. */
#pragma once

#include "ublkd/model/reason.h"

/* By enum condition_reason, _REASON_MAX of them. */
extern const struct reason_info reason_table[];
