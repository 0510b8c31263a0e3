/* SPDX-License-Identifier: MIT */
/* The programs that make and check file systems, and a run of one behind walls. */
#pragma once

#include "ublkd/filesystems/filesystem_wire.h"

/* Run the program for `go` on the disk, wait for it, and fill outcome, error, status and text of the report. No other
 * process waits for children of this one. */
void filesystem_program_run(int disk, const struct filesystem_go *go, struct filesystem_report *ret);
