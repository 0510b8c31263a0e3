/* SPDX-License-Identifier: MIT */
/* The linear target: a part of a child, or children one after another. */
#pragma once

#include "targets/target.h"

extern const struct target linear_target;
