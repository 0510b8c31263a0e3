/* SPDX-License-Identifier: MIT */
/* A file of the user's that cannot be used. */
#pragma once

#include "ublkctl/text/exit_status.h"

/* Says in one sentence why (`error` is an errno) and what to do. The exit status that goes with it. */
enum exit_status say_file_fault(const char *path, int error);
