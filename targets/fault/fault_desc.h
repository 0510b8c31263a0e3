/* SPDX-License-Identifier: MIT */
/* What both programs know of the fault target. */
#pragma once

#include "targets/target_desc.h"

extern const struct target_desc fault_desc;
