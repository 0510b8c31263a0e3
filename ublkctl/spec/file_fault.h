/* SPDX-License-Identifier: MIT */
/* Explain why a file of the user cannot be read. */
#pragma once

#include "ublkctl/text/exit_status.h"

/* Print one sentence with the cause (`error` is an errno) and what to do. Return the exit status for it. */
enum exit_status print_file_fault(const char *path, int error);
