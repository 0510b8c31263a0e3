/* SPDX-License-Identifier: MIT */
/* The stripe target: a disk over several targets, chunk by chunk. */
#pragma once

#include "targets/target.h"

extern const struct target stripe_target;
