/* SPDX-License-Identifier: MIT */
/* The null target: drops what is written, reads as zeroes. For measurements and tests. */
#pragma once

#include "targets/target.h"

extern const struct target null_target;
