/* SPDX-License-Identifier: MIT */
/* Commands of the shell. */
#pragma once

#include "ublkd/base/cleanup.h"

/* Run a command, formatted as by printf(); a check fails if it does. */
_printf_(1, 2) void shell_run(const char *format, ...);
